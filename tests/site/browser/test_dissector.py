# SPDX-License-Identifier: BSD-3-Clause
"""In the page, a heap becomes the packets that the sender makes of it."""

import dataclasses
import random
import re
from typing import Any

import numpy as np
import pytest

from spead_tutorial.send import ItemGroup, PacketGenerator
from support.browser import ONLY_VIOLATIONS, violations
from support.random_heaps import FLAVOURS, PACKET_SIZES, HeapSpec, ItemSpec, Part, random_item

PAGE = "tutorial/1-spead-on-the-wire.html"
#: The packets of each heap, or the field that it is refused for.
_CUT = """all => all.map((one) => {
    try {
        return Dissector.packets(one).map((packet) => Dissector.hex(packet.bytes, ''));
    } catch (error) {
        if (error instanceof Dissector.Refusal && error.message) return error.where;
        throw error;
    }
})"""


@pytest.fixture
def dissector(page):
    page.goto(PAGE)
    return page


@pytest.fixture
def script(page):
    """A page that has only what takes heaps apart."""
    for name in ("packets.js", "dissector.js"):
        page.add_script_tag(url=name)
    return page


# ---- The same heaps, at random, in the page and by the reference ----


def typed(item: ItemSpec) -> dict[str, str]:
    """What a reader types to have an item."""
    kind = item.dtype or " ".join(f"{letter}:{bits}" for letter, bits in item.format or ())
    shape = ", ".join("?" if size is None else str(size) for size in item.shape)
    values = map(str, np.asarray(item.value, object).ravel())
    value = ("" if kind == "c:8" else " ").join(values)
    words = {"name": item.name, "description": item.description, "id": hex(item.id)}
    return words | {"type": kind, "shape": shape, "value": value}


def can_be_typed(item: ItemSpec) -> bool:
    kind, rows = typed(item)["type"], len(item.shape)
    is_known = re.fullmatch(r"[<>]?[iuf]\d|[iuf]:\d+", kind) or (kind == "c:8" and rows == 1)
    return bool(is_known) and item.order == "C"


def some_heap(rng: random.Random) -> tuple[HeapSpec, dict[str, Any]]:
    """A heap, and what a reader types to have it."""
    bits, is_described = rng.choice((40, 48, *FLAVOURS)), rng.random() < 0.4
    ids = rng.sample(range(0x20, 1 << min(bits, 63 - bits, 14)), rng.choice((0, 2, 9, 40)))
    made = (random_item(rng, id, bits) for id in ids)
    items = [dataclasses.replace(one, name=f"item {one.id}") for one in made if can_be_typed(one)]
    kinds = ("add_descriptor", "add_item")[not is_described :]
    spec = HeapSpec(bits, 0, False, tuple(Part(kind, one) for one in items for kind in kinds))
    words = {"addressBits": bits, "descriptors": is_described, "items": list(map(typed, items))}
    return spec, words


@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(seed, marks=pytest.mark.thorough) for seed in range(1, 8))]
)
def test_the_page_cuts_any_heap_as_the_reference_does_and_refuses_what_has_no_room(script, seed):
    rng = random.Random(seed)
    heaps, expected = [], []
    for spec, words in (some_heap(rng) for _ in range(300)):
        size, cnt = rng.choice(PACKET_SIZES), rng.choice((0, 1, rng.getrandbits(64)))
        heaps.append(words | {"packetSize": str(size), "heapCount": str(cnt)})
        mask = (1 << spec.heap_address_bits) - 1
        cut = spec.encode(cnt & mask, size) if spec.fits(size) else []
        expected.append([packet.hex() for packet in cut] or "flavour")
    assert expected.count("flavour") < 60
    for heap, want, got in zip(heaps, expected, script.evaluate(_CUT, heaps), strict=True):
        assert got == want, heap


ITEM = {"name": "a", "id": "0x1000", "type": "<i2", "shape": "3", "value": "1 2 3"}
HEAP = {"addressBits": 40, "packetSize": "1472", "heapCount": "1", "descriptors": True}
OCTETS = {"type": "u:8", "shape": "?"}


@pytest.mark.parametrize(
    ("changed", "where"),
    [
        *(({"packetSize": text}, "packetSize") for text in ("55", "65508", "", "1.5")),
        *(({"heapCount": text}, "heapCount") for text in ("-1", str(1 << 64), "one")),
        *(({"id": text}, "id") for text in ("0", "6", "-7", hex(1 << 23))),
        *(({"type": text}, "type") for text in ("i3", "f2", "u:0", "f:16", "c:7", "b:1", "")),
        *(({"shape": text}, "shape") for text in ("-1", "?", "x", "99999999", "1000, 2000")),
        *(({"value": text}, "value") for text in ("", "1 2 3 4", "1.5", "40000", "0..1048576")),
        *((OCTETS | changed, "shape") for changed in ({"shape": "?, ?"}, {"shape": "2097152"})),
        (OCTETS | {"shape": "2, ?"}, "value"),  # three numbers
        *((OCTETS | {"value": text}, "value") for text in ("-1", "256")),
        *(({"type": "f4", "value": text}, "value") for text in ("1e39", "one", "0x1")),
        *(({"type": "c:8", "value": text}, "value") for text in ("ab", "abcd", "aß ")),
        ({"type": "c:8", "shape": ""}, "shape"),
        ({"name": "µ"}, "name"),
        ({"addressBits": 8, "id": "0x100"}, "id"),  # which only a value may have
        ({"addressBits": 56, "id": "7", "type": "u:256"}, "type"),
        ({"addressBits": 8, "id": "7", "type": "i1", "shape": "300"}, "shape"),
        ({"packetSize": "56", "shape": "100000"}, "packetSize"),
    ],
)  # fmt: skip
def test_what_the_sender_would_refuse_is_refused_for_its_field(script, changed, where):
    heap = {name: changed.get(name, value) for name, value in HEAP.items()}
    item = {name: changed.get(name, value) for name, value in ITEM.items()}
    assert script.evaluate(_CUT, [heap | {"items": [item]}]) == [where]


# ---- As a reader uses it ----


def bytes_shown(page):
    """The bytes of the packets whose boxes are open."""
    return " ".join(page.locator(".dissector td.bytes:visible").all_inner_texts())


def test_what_is_typed_is_in_the_bytes_at_once_and_a_packet_stays_open(dissector):
    assert "80 16 00 00 00 00 03 e8" in bytes_shown(dissector)
    dissector.locator(".dissector").get_by_label("Value").first.fill("258")
    assert "80 16 00 00 00 00 01 02" in bytes_shown(dissector)
    dissector.get_by_label("Flavour").select_option(label="SPEAD-64-48")
    assert "96 00 00 00 00 00 01 02" in bytes_shown(dissector)
    assert "descriptor of timestamp" not in dissector.locator(".dissector").inner_text()
    dissector.get_by_label("Descriptors, too").check()
    assert "descriptor of timestamp" in dissector.locator(".dissector").inner_text()
    dissector.get_by_text("Packet 2 of").click()
    table = dissector.get_by_role("table", name="Packet 2")
    table.wait_for()
    dissector.get_by_label("Heap count").fill("256")
    assert "80 01 00 00 00 00 01 00" in table.inner_text()


def test_what_is_refused_is_said_beside_its_field_and_goes_away(dissector):
    size = dissector.get_by_label("Packet size")
    size.fill("55")
    error = dissector.locator(f"#{size.get_attribute('aria-describedby')}")
    assert "56" in error.inner_text()
    assert size.get_attribute("aria-invalid") == "true"
    assert dissector.locator(".dissector table").count() == 0
    size.fill("56")
    assert error.inner_text() == ""
    assert size.get_attribute("aria-invalid") is None
    shape = dissector.get_by_label("Shape").nth(1)
    before = shape.input_value()
    shape.fill("1048576")
    assert "too many packets" in error.inner_text()
    shape.fill(before)
    wrong = dissector.get_by_label("Type").nth(1)
    wrong.fill("u:0")
    assert dissector.locator("[aria-invalid]").evaluate_all("all => all.length") == 1
    assert wrong.get_attribute("aria-invalid") == "true"


def test_what_is_refused_can_be_read_by_all(dissector, axe):
    dissector.get_by_label("Packet size").fill("55")
    dissector.evaluate(axe.axe_script)
    for mode, options in (("light", {}), ("dark", {"runOnly": ["color-contrast"]})):
        dissector.emulate_media(color_scheme=mode)
        dissector.wait_for_function(f"document.documentElement.dataset.theme === '{mode}'")
        assert violations(dissector, ONLY_VIOLATIONS | options, within=".dissector") == [], mode


def test_the_keyboard_alone_adds_an_item_and_opens_a_packet(dissector):
    before = dissector.locator(".dissector fieldset").count()
    dissector.get_by_role("button", name="Add an item").focus()
    dissector.keyboard.press("Enter")
    assert dissector.locator(".dissector fieldset").count() == before + 1
    dissector.keyboard.press("Control+A")  # it is in the new item's name
    dissector.keyboard.type("gain")
    assert dissector.locator("td", has_text="gain").count() > 0
    dissector.locator("summary", has_text="Packet 3 of").focus()
    dissector.keyboard.press("Enter")
    dissector.get_by_role("table", name="Packet 3").wait_for()
    dissector.get_by_role("button", name=f"Remove item {before + 1}").focus()
    dissector.keyboard.press("Enter")
    assert dissector.locator(".dissector fieldset").count() == before


def test_items_that_come_and_go_are_numbered_as_they_stand_and_have_names_of_their_own(dissector):
    fields = dissector.locator(".dissector")
    add = fields.get_by_role("button", name="Add an item")
    add.click()
    add.click()
    fields.get_by_role("button", name="Remove item 2").click()
    fields.get_by_role("button", name="Remove item 2").click()
    add.click()
    assert fields.locator("legend").all_inner_texts() == ["Item 1", "Item 2", "Item 3"]
    assert fields.locator("[aria-invalid]").count() == 0


def test_every_packet_that_is_shown_is_shown_whole(dissector):
    fields = dissector.locator(".dissector")
    fields.get_by_label("Shape").nth(1).fill("70")
    fields.get_by_label("Value").nth(1).fill("0..69")
    dissector.get_by_label("Packet size").fill("96")
    dissector.evaluate(
        "document.querySelectorAll('.dissector details').forEach(d => d.open = true)"
    )
    dissector.wait_for_function("document.querySelectorAll('.dissector table').length > 1")
    group = ItemGroup()
    samples = np.arange(70, dtype=np.int8)
    group.add_item(0x1600, "timestamp", "", (), format=[("u", 40)], value=1000)
    group.add_item(0x3300, "adc_samples", "", (70,), np.int8, value=samples)
    heap = group.get_heap(descriptors="none", data="all")
    assert bytes_shown(dissector) == " ".join(one.hex(" ") for one in PacketGenerator(heap, 7, 96))


def test_of_very_many_packets_the_first_are_shown_and_the_page_says_so(dissector):
    fields = dissector.locator(".dissector")
    fields.get_by_label("Shape").nth(1).fill("100000")
    fields.get_by_label("Packet size").fill("56")
    boxes = fields.locator("details").count()
    said = fields.locator(".said").inner_text()
    assert f"The first {boxes} are shown" in said
    assert int(said.split()[0]) > boxes
