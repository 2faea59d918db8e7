# SPDX-License-Identifier: BSD-3-Clause
"""Packets taken apart: those that were made, and those that nobody made."""

import contextlib
import itertools
import random

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, given, settings

from spead_tutorial import wire
from support import ref_decode, ref_encode
from support.random_heaps import PACKET_SIZES, random_heap

UNTIMED = settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])
EMPTY_HEAP = ref_encode.encode_heap([], 7, 1472)[0]


def specs(n):
    """Yield random heaps with their packets."""
    for seed in range(n):
        rng = random.Random(seed)
        spec = random_heap(rng)
        try:
            yield spec, spec.encode(1, rng.choice(PACKET_SIZES))
        except ValueError:
            continue


def patched(packet, offset, *new):
    changed = bytearray(packet)
    changed[offset : offset + len(new)] = bytes(new)
    return bytes(changed)


def test_random_heaps_are_taken_apart_into_what_they_were_made_of():
    for spec, packets in specs(100):
        parsed = [wire.parse(packet) for packet in packets]
        parts, bug_compat = spec.parts, spec.bug_compat
        _, payload = ref_encode.lay_out(spec.reference_items(), spec.heap_address_bits, bug_compat)
        joined = b"".join(packet.payload for packet in parsed)
        assert joined.startswith(payload)
        assert len(joined) == parsed[0].heap_length
        for packet, data in zip(parsed, packets, strict=True):
            check_parsed(packet, ref_decode.parse(data))
        check_rows(packets, wire.dissect_heap(packets, bug_compat=bug_compat))
        check_rows(packets, [wire.dissect(packet, bug_compat=bug_compat) for packet in packets])
        check_values(spec, packets)
        pointers = [item for packet in parsed for item in packet.items if not item.immediate]
        pointers = list(dict.fromkeys(pointers))
        ends = [pointer.value for pointer in pointers] + [len(joined)]
        found = [
            wire.parse_descriptor(joined[at : min(end for end in ends if end > at)], bug_compat)
            for at in (pointer.value for pointer in pointers if pointer.id == 5)
        ]
        assert found == [
            wire.Description(
                id=item.id,
                name=item.name,
                description=item.description,
                format=item.format or (),
                shape=item.shape,
                numpy_header=item.raw_descriptor(bug_compat).numpy_header.decode(),
            )
            for item in (part.item for part in parts if part.kind == "add_descriptor")
        ]


def check_parsed(packet, expected):
    names = ("address_bits", "cnt", "heap_length", "offset", "payload")
    found = packet.heap_address_bits, packet.heap_cnt, packet.heap_length, packet.payload_offset
    assert (*found, packet.payload) == tuple(getattr(expected, name) for name in names)
    assert packet.payload_length == len(packet.payload)
    assert packet.items == tuple(
        wire.Pointer(item.id, item.immediate, item.value) for item in expected.pointers
    )


def check_rows(packets, dissected):
    """Rows cover every byte once and in order."""
    for packet, rows in zip(packets, dissected, strict=True):
        assert all(row.raw for row in rows)
        ends = itertools.accumulate(len(row.raw) for row in rows)
        assert [row.offset for row in rows] == [0, *ends][:-1]
        assert b"".join(row.raw for row in rows) == packet


def check_values(spec, packets):
    """Values are split at their addresses."""
    rows = [row for rows in wire.dissect_heap(packets) for row in rows if row.depth == 0]
    whole = [row.raw for row in rows if row.field == "value"]
    items = [part.item for part in spec.parts if part.kind == "add_item"]
    n_bytes = spec.heap_address_bits // 8
    values = [item.data for item in items if not item.allow_immediate or len(item.data) > n_bytes]
    if len(packets) == 1:
        assert whole == [value for value in values if value]
    else:
        assert set(whole) <= set(values)


def test_a_whole_descriptor_has_rows_of_its_own():
    descriptor = ref_encode.Descriptor(
        0x1000, b"adc", b"ADC samples", b"", (("u", 10), ("i", 6)), (None, 4)
    )
    (packet,) = ref_encode.encode_heap([descriptor], 1, 1472)
    nested = {row.field: row for row in wire.dissect(packet) if row.depth == 1}
    assert nested["name"].value == "adc"
    assert nested["description"].value == "ADC samples"
    assert nested["format"].meaning == "[('u', 10), ('i', 6)]"
    assert nested["shape"].meaning == "(None, 4)"


def test_a_descriptor_in_two_packets_is_shown_in_parts():
    descriptor = ref_encode.Descriptor(0x1000, b"adc", b"ADC samples", b"", (("u", 8),), ())
    packets = ref_encode.encode_heap([descriptor], 1, 96)
    assert len(packets) > 1
    for rows in wire.dissect_heap(packets):
        assert rows[-1].field == "part of a descriptor"


def test_the_later_part_of_a_descriptor_within_a_packet_is_cut_where_it_says():
    inner = ref_encode.packet(1, 11, 8, b"adc", [(True, 0x14, 0x1000), (False, 0x10, 8)])
    (packet,) = ref_encode.encode_heap([ref_encode.value(inner, 5)], 1, 1472)
    nested = {row.field: row for row in wire.dissect(packet) if row.depth == 1}
    assert (nested["name"].value, nested["name"].offset) == ("adc", len(packet) - 3)


def test_a_descriptor_that_cannot_be_read_is_a_row_and_not_an_error():
    value = ref_encode.Value(5, b"not a descriptor", allow_immediate=False)
    (packet,) = ref_encode.encode_heap([value], 1, 1472)
    (row,) = [row for row in wire.dissect(packet) if row.field == "descriptor"]
    assert "cannot be read: byte 0: expected 0x53" in row.meaning


def test_what_another_packet_points_to_is_known_only_from_it():
    item = ref_encode.Value(0x1000, bytes(40), allow_immediate=False)
    packets = ref_encode.encode_heap([item], 1, 64)
    alone = wire.dissect(packets[1])[-1]
    together = wire.dissect_heap(packets)[1][-1]
    assert alone.meaning.endswith("of an item that another packet points to")
    assert "item 0x1000" in together.meaning


def test_items_are_shown_by_their_names_and_the_start_of_a_stream_in_words():
    items = [ref_encode.Inline(0x1600, 3), ref_encode.Inline(6, 0)]
    (packet,) = ref_encode.encode_heap(items, 1, 1472)
    rows = wire.dissect(packet, names={0x1600: "timestamp"})
    assert "'timestamp' (0x1600), immediate: 3" in [row.meaning for row in rows]
    assert any("start of stream" in row.meaning for row in rows)


def test_the_table_has_a_heading_and_a_line_for_every_row():
    rows = wire.dissect(EMPTY_HEAP)
    lines = wire.format_table(rows).splitlines()
    assert len(lines) == len(rows) + 1
    assert lines[0].split() == ["offset", "bytes", "field", "meaning"]
    assert lines[1].split() == ["0", "53", "magic", "SPEAD"]


def test_a_table_has_nothing_that_a_terminal_could_obey():
    descriptor = ref_encode.Descriptor(0x1000, b"\x1b[2J\r\x07", b"\x9b", b"", (("u", 8),), ())
    (packet,) = ref_encode.encode_heap([descriptor], 1, 1472)
    table = wire.format_table(wire.dissect(packet))
    assert r"\x1b[2J\r\x07" in table
    assert all(line.isprintable() for line in table.splitlines())


def test_packets_of_two_heaps_are_not_one_heap():
    other = ref_encode.encode_heap([], 8, 1472)[0]
    with pytest.raises(wire.WireError, match="packet 1: expected heap count 7, saw 8"):
        wire.dissect_heap([EMPTY_HEAP, other])


@pytest.mark.parametrize(
    ("packet", "message"),
    [
        (b"", "byte 0: expected a header of 8 bytes, saw the end"),
        (EMPTY_HEAP[:7], "byte 7: expected a header of 8 bytes, saw the end"),
        (patched(EMPTY_HEAP, 0, 0x54), "byte 0: expected 0x53.* saw 0x54"),
        (patched(EMPTY_HEAP, 1, 3), "byte 1: expected version 4, saw 3"),
        (patched(EMPTY_HEAP, 2, 0), "byte 2: expected 1 to 7 bytes .* saw 0"),
        (patched(EMPTY_HEAP, 3, 6), "byte 3: expected 5 bytes .* saw 6"),
        (patched(EMPTY_HEAP, 5, 1), "byte 5: expected 0, .* saw 0x01"),
        (patched(EMPTY_HEAP, 6, 1), "byte 49: expected 261 item pointers, which end at byte 2096"),
        (EMPTY_HEAP[:-1], "byte 48: expected 1 byte of payload from byte 48 on, saw 0"),
        (EMPTY_HEAP + b"12", "byte 49: expected the end .* saw 2 bytes more"),
        (patched(EMPTY_HEAP, 8, 0), r"expected one immediate item 0x1 \(heap count\), saw 0"),
        (patched(EMPTY_HEAP, 18, 1), r"expected one immediate item 0x1 \(heap count\), saw 2"),
        (patched(EMPTY_HEAP, 31, 1), "inside the heap's 1 byte, saw offset 1 and length 1"),
        (patched(EMPTY_HEAP, 47, 9), "byte 40: expected an address .* saw 9 for item 0x0"),
    ],
)
def test_bytes_that_are_no_packet_are_refused_in_one_line(packet, message):
    with pytest.raises(wire.WireError, match=message) as error:
        wire.parse(packet)
    assert "\n" not in str(error.value)


def test_a_packet_without_an_id_is_no_descriptor():
    with pytest.raises(wire.WireError, match=r"item 0x14 \(id\) in it, saw 0"):
        wire.parse_descriptor(EMPTY_HEAP)


def take_apart(data):
    """Call everything, letting only WireError pass."""
    for function in (
        wire.parse,
        lambda packet: wire.format_table(wire.dissect(packet)),
        lambda packet: wire.dissect_heap([packet, packet]),
        wire.parse_descriptor,
        lambda packet: wire.parse_descriptor(packet, 7),
        lambda packet: wire.parse(memoryview(packet)),
    ):
        with contextlib.suppress(wire.WireError):
            function(data)


@UNTIMED
@given(st.binary(max_size=100), st.integers(0, 10), st.integers(1, 7))
def test_arbitrary_bytes_raise_nothing_but_wire_error(data, n, width):
    take_apart(data)
    take_apart(ref_encode.header(n, 8 * width) + data)


@UNTIMED
@given(st.integers(0, 199), st.data())
def test_packets_with_changed_bytes_raise_nothing_but_wire_error(seed, data):
    rng = random.Random(seed)
    try:
        packets = random_heap(rng).encode(1, rng.choice(PACKET_SIZES))
    except ValueError:
        return
    packet = bytearray(data.draw(st.sampled_from(packets)))
    positions = st.integers(0, min(len(packet), 400) - 1)
    for offset in data.draw(st.lists(positions, max_size=4)):
        packet[offset] = data.draw(st.integers(0, 255))
    take_apart(bytes(packet[: data.draw(st.integers(0, len(packet)))]))
    take_apart(bytes(packet))
