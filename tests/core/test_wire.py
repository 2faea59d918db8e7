# SPDX-License-Identifier: BSD-3-Clause
"""Packets taken apart: those that were made, and those that nobody made."""

import contextlib
import itertools
import random
from unittest import mock

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, given, settings

from spead_tutorial import recv, wire
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
    ("data", "message"),
    [
        (b"", "byte 0: expected a SPEAD header of 8 bytes, saw the end"),
        (EMPTY_HEAP[:7], "byte 7: expected a SPEAD header of 8 bytes, saw the end"),
        (patched(EMPTY_HEAP, 0, 0x54), "byte 0: expected 0x53.* saw 0x54"),
        (patched(EMPTY_HEAP, 1, 3), "byte 1: expected version 4 of SPEAD, saw 3"),
    ],
)
def test_what_has_no_header_of_spead_is_refused_in_one_line(data, message):
    for function in (wire.parse, wire.dissect, wire.parse_descriptor, packets_of_one_heap):
        with pytest.raises(wire.WireError, match=message) as error:
            function(data)
        assert "\n" not in str(error.value)


def packets_of_one_heap(data):
    return wire.dissect_heap([EMPTY_HEAP, data])


ALL, DATA = [(True, 1, 7), (True, 2, 8), (True, 3, 0), (True, 4, 8)], b"12345678"
CNT, LENGTH, OFFSET, PAYLOAD = ALL


def packet_of(pointers, payload=DATA, address_bits=40):
    words = (ref_encode.pointer(*pointer, address_bits) for pointer in pointers)
    return ref_encode.header(len(pointers), address_bits) + b"".join(words) + payload


@pytest.mark.parametrize(
    ("packet", "at", "words"),
    [
        (patched(packet_of(ALL), 2, 2), 3, "with byte 2 an item pointer has 7 bytes"),
        (patched(packet_of(ALL), 2, 8, 0), 3, "with byte 2 an item pointer has 8 bytes"),
        (patched(packet_of(ALL), 2, 255, 255), 3, "with byte 2 an item pointer has 510 bytes"),
        (patched(packet_of(ALL), 6, 1, 4), 6, "260; the packet ends after 5 of them"),
        (packet_of(ALL)[:21], 6, "4; the packet ends after 1 of them"),
        (packet_of([])[:8], 6, "0; no heap count (0x1)"),
        (packet_of([CNT, LENGTH, PAYLOAD]), 6, "no payload offset (0x3)"),
        (packet_of([CNT, LENGTH, OFFSET]), 6, "no payload length (0x4)"),
        (packet_of([LENGTH, OFFSET, PAYLOAD]), 6, "no heap count (0x1)"),
        (packet_of([*ALL[1:], (False, 1, 0)]), 32, "that is no heap count, which is immediate"),
        (packet_of(ALL, DATA[:-1]), 32, "8; the packet ends after 7 bytes of its payload"),
        (packet_of(ALL, b""), 32, "8; the packet ends after 0 bytes of its payload"),
        (packet_of([*ALL, (True, 3, 1)]), 32, "payload ends at byte 9, beyond the heap's 8 bytes"),
        (packet_of([*ALL, (True, 2, 7)]), 32, "payload ends at byte 8, beyond the heap's 7 bytes"),
        (packet_of([*ALL, (False, 0x1000, 9)]), 40, "address 9 is beyond the heap's 8 bytes"),
        (packet_of(ALL, DATA + b"9"), 48, "1 byte more than the packet says that it has"),
    ],
)
def test_what_makes_a_packet_malformed_is_said_where_it_is_seen(packet, at, words):
    rows = wire.dissect(packet)
    check_rows([packet], [rows])
    assert words in next(row.meaning for row in rows if row.offset == at)
    assert wire.parse(packet).faults
    with pytest.raises(wire.WireError, match=r"byte|expected"):
        wire.parse_descriptor(packet)


@pytest.mark.parametrize(
    ("packet", "at", "words"),
    [
        (packet_of([CNT, OFFSET, PAYLOAD]), 6, "3; no heap length (0x2)"),
        (packet_of([CNT, OFFSET, PAYLOAD]), 32, "payload, of an item that another packet"),
        (packet_of([CNT, OFFSET, PAYLOAD, (False, 0x1000, 0)]), 40, "as far as it is here"),
        (packet_of([CNT, *ALL]), 8, "repeated, and the last one counts"),
        (packet_of([(True, 0x1600, 1), *ALL, (True, 0x1600, 2)]), 8, "repeated"),
        (packet_of([*ALL, (False, 2, 0)]), 40, "that is no heap length, which is immediate"),
        (packet_of([*ALL, (True, 5, 0)]), 40, "that is no descriptor, which has an address"),
        (patched(packet_of(ALL), 5, 1), 4, "not zero; receivers pass over it"),
    ],
)
def test_what_is_odd_but_no_fault_is_said_where_it_is_seen(packet, at, words):
    rows = wire.dissect(packet)
    check_rows([packet], [rows])
    assert words in next(row.meaning for row in rows if row.offset == at)
    assert wire.parse(packet).faults == ()


def test_a_packet_that_says_little_of_itself_is_shown_with_its_items():
    samples = b"\x01\x02\x03\x04"
    packet = packet_of([CNT, (True, 4, 4), (True, 0x1600, 9), (False, 0x3300, 0)], samples, 48)
    parsed = wire.parse(packet)
    assert parsed.items[2:] == (wire.Pointer(0x1600, True, 9), wire.Pointer(0x3300, False, 0))
    assert parsed.payload == samples
    assert parsed.faults == (
        "byte 6: no payload offset (0x3): receivers do not know its place, here shown as 0",
    )
    rows = wire.dissect(packet, names={0x3300: "samples"})
    assert (rows[-1].field, rows[-1].raw) == ("value", samples)
    assert rows[-1].meaning.startswith("item 0x3300 'samples': bytes 0 to 3")


def test_what_lies_beyond_the_end_of_its_heap_is_of_no_item():
    rows = wire.dissect(packet_of([*ALL, (True, 2, 6), (False, 0x1000, 0)]))
    found = [(row.field, row.raw, row.meaning) for row in rows if row.offset >= 56]
    assert found[0] == ("value", DATA[:6], "item 0x1000: bytes 0 to 5 of the heap's payload")
    assert found[1][:2] == ("payload", DATA[6:])
    assert found[1][2].endswith("beyond the heap's end")


def test_a_heap_whose_length_no_packet_says_ends_where_its_last_packet_does():
    item = ref_encode.Value(0x1000, bytes(range(100)), allow_immediate=False)
    sent = ref_encode.encode_heap([item], 7, 88)
    packets = [
        packet_of(
            [CNT, *((True, id, value) for id, value in ((3, one.offset), (4, len(one.payload))))]
            + [(False, 0x1000, 0)] * (one.offset == 0),
            one.payload,
        )
        for one in map(ref_decode.parse, sent)
    ]
    rows = [rows[-1] for rows in wire.dissect_heap(packets)]
    assert len(rows) > 1
    assert all("item 0x1000" in row.meaning for row in rows)
    assert ["as far as it is here" in row.meaning for row in rows] == [
        *[False] * (len(rows) - 1),
        True,
    ]


def test_a_packet_without_an_id_is_no_descriptor():
    with pytest.raises(wire.WireError, match=r"item 0x14 \(id\) in it, saw none"):
        wire.parse_descriptor(EMPTY_HEAP)


NAMED, IDENTIFIED = (False, 0x10, 0), (True, 0x14, 0x1000)


@pytest.mark.parametrize(
    ("pointers", "why"),
    [
        ([*ALL, NAMED], "as it has no id"),
        ([*ALL, NAMED, (True, 0x14, 3)], "as its id is one of the protocol's own"),
        ([*ALL, IDENTIFIED], "as it has no name"),
        ([*ALL, IDENTIFIED, NAMED, (False, 0x11, 0)], "as it has no name"),
        ([CNT, (True, 2, 9), (True, 3, 1), PAYLOAD, IDENTIFIED, NAMED], "only a part of one"),
        ([CNT, OFFSET, PAYLOAD, IDENTIFIED, NAMED, (False, 0x11, 9)], "only a part of one"),
        ([CNT, PAYLOAD, IDENTIFIED, NAMED], "as it is malformed"),
        ([*ALL, IDENTIFIED, NAMED], None),
        ([CNT, OFFSET, PAYLOAD, IDENTIFIED, NAMED], None),
        ([*ALL, IDENTIFIED, IDENTIFIED, (False, 0x10, 4), NAMED, NAMED], None),
    ],
)
@pytest.mark.parametrize("follows", [b"", b"more"])
def test_a_descriptor_that_receivers_leave_out_says_why(pointers, why, follows):
    inner = packet_of(pointers) + follows
    (packet,) = ref_encode.encode_heap([ref_encode.Value(5, inner, False)], 1, 1472)
    rows = wire.dissect(packet)
    check_rows([packet], [rows])
    said = [row.meaning for row in rows if row.depth and row.field == "number of pointers"]
    assert [one.partition("receivers leave this descriptor out, ")[2] for one in said] == [
        mock.ANY if why else ""
    ]
    assert (why or "") in said[0]
    with recv.Stream(None) as stream:
        stream.add_buffer_reader(packet)
        assert len(stream.get().get_descriptors()) == (why is None)


@pytest.mark.parametrize("beyond", [(False, 0, 2), (False, 0x11, 2)])
def test_a_descriptor_with_an_address_beyond_what_came_is_a_part_of_one(beyond):
    pointers = [CNT, OFFSET, (True, 4, 1), (True, 0x14, 7), NAMED, beyond]
    inner = packet_of(pointers, b"n", 8)
    take_apart(inner)
    assert ref_decode.decode_descriptor(inner, 0) is None
    with pytest.raises(wire.WireError, match="saw a part of one"):
        wire.parse_descriptor(inner)


def test_the_last_of_what_a_descriptor_repeats_counts():
    pointers = [*ALL, (False, 0x10, 0), (False, 0x10, 4), IDENTIFIED, (True, 0x14, 0x1001)]
    found = wire.parse_descriptor(packet_of([*pointers, (False, 0x10, 0)]))
    assert (found.id, found.name) == (0x1001, "1234")


def test_what_is_left_over_of_a_format_or_a_shape_is_said():
    fields, sizes = b"u\0\0\x08i\0", b"\0\0\0\0\0\x03\x01\0"
    items = [IDENTIFIED, NAMED, (False, 0x13, 1), (False, 0x12, 1 + len(fields))]
    inner = ref_encode.packet(1, None, 0, b"x" + fields + sizes, items)
    (packet,) = ref_encode.encode_heap([ref_encode.Value(5, inner, False)], 1, 1472)
    nested = {row.field: row.meaning for row in wire.dissect(packet) if row.depth == 1}
    assert nested["format"] == "[('u', 8)]; 2 bytes are left over"
    assert nested["shape"] == "(3,); 2 bytes are left over"
    found = wire.parse_descriptor(inner)
    assert (found.format, found.shape) == ((("u", 8),), (3,))


def take_apart(data):
    """Hold everything against the bytes, and against what a receiver makes of them."""
    if len(data) < 8 or data[:2] != b"\x53\x04":
        with pytest.raises(wire.WireError):
            wire.dissect(data)
        return
    for bug_compat in (0, 7):
        rows = wire.dissect(data, bug_compat=bug_compat)
        check_rows([data], [rows])
        assert all(line.isprintable() for line in wire.format_table(rows).splitlines())
    check_rows([data, data], wire.dissect_heap([data, data]))
    check_faults(data)
    described = ref_decode.decode_descriptor(data, 0)
    with contextlib.suppress(*([] if described else [wire.WireError])):
        found = wire.parse_descriptor(memoryview(data))
        assert described is None or (found.id, found.shape) == (described.id, described.shape)


def check_faults(data):
    """What a receiver takes has none, and is understood alike."""
    packet = wire.parse(data)
    try:
        expected = ref_decode.parse(data)
    except ref_decode.BadPacketError:
        assert packet.faults
        return
    assert bool(packet.faults) is (expected.size < len(data))
    check_parsed(packet, expected)


@UNTIMED
@given(st.binary(max_size=100), st.integers(0, 10), st.integers(1, 7))
def test_arbitrary_bytes_are_taken_apart_as_a_receiver_does(data, n, width):
    take_apart(data)
    take_apart(ref_encode.header(n, 8 * width) + data)


ODD_POINTERS = st.lists(
    st.tuples(
        st.booleans(),
        st.sampled_from([*range(7), *range(1, 5), 5, *range(0x10, 0x16), 0x14, 0x16]),
        st.integers(0, 24),
    ),
    max_size=12,
)
SMALL = st.integers(0, 9)


@settings(UNTIMED, max_examples=400)
@given(ODD_POINTERS, ODD_POINTERS, st.binary(max_size=24), st.data())
def test_odd_packets_and_descriptors_in_them_are_taken_apart_as_a_receiver_does(
    pointers, inside, payload, data
):
    bits = data.draw(st.sampled_from((8, 40, 48)))
    nested = packet_of(inside, payload, bits)
    take_apart(nested)
    n = min(len(nested), (1 << bits) - 1)
    pointers += [CNT, (True, 2, n), OFFSET, (True, 4, n), (False, 5, 0)]
    whole = bytearray(packet_of(data.draw(st.permutations(pointers)), nested, bits))
    for at in data.draw(st.lists(st.integers(2, 7), max_size=1)):
        whole[at] = data.draw(SMALL)
    take_apart(bytes(whole[: data.draw(st.integers(0, len(whole)))]))
    take_apart(bytes(whole) + bytes(data.draw(SMALL)))


@UNTIMED
@given(st.integers(0, 199), st.data())
def test_packets_with_changed_bytes_are_taken_apart_as_a_receiver_does(seed, data):
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
