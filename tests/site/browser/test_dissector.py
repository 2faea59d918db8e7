# SPDX-License-Identifier: BSD-3-Clause
"""In the page, a heap becomes the packets that the sender makes of it."""

import math
import random

import numpy as np
import pytest

from spead_tutorial import Flavour
from spead_tutorial.send import ItemGroup, PacketGenerator
from support.browser import ONLY_VIOLATIONS, violations

PAGE = "tutorial/1-spead-on-the-wire.html"
_CUT = """all => all.map((one) => {
    try {
        return Dissector.packets(one).map((packet) => Dissector.hex(packet.bytes, ''));
    } catch (error) {
        if (error instanceof Dissector.Refusal && error.where && error.message) return null;
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


# ---- The same heaps, at random, in the page and in the core ----


def some_type(rng):
    if rng.random() < 0.5:
        letter = rng.choice("iuf")
        size = rng.choice([4, 8] if letter == "f" else [1, 2, 4, 8])
        return f"{rng.choice(['', '|'] if size == 1 else ['', '<', '>'])}{letter}{size}"
    letter = rng.choice("iuufc")
    usual = {"f": (32, 64), "c": (8,)}.get(letter, (1, 8, 12, 33, 40, 48, 64, 80))
    return f"{letter}:{rng.choice(usual if rng.random() < 0.97 else (0, 7, 16, 2000))}"


def some_number(rng, kind):
    letter, colon, bits = kind.partition(":")
    letter, bits = (letter, int(bits)) if colon else (kind[-2], 8 * int(kind[-1]))
    if rng.random() < 0.005:
        return rng.choice(["1.5", "-1", str(1 << bits), f"{-(1 << bits)}"])
    if letter == "f":
        numbers = [rng.uniform(-1e3, 1e3), rng.uniform(-1, 1) * 10 ** rng.randint(-44, 37)]
        return rng.choice([*map(repr, numbers), "0", "-0.0", "nan", "inf", "-inf", "17"])
    low, high = (-(1 << bits) // 2, (1 << bits) // 2 - 1) if letter == "i" else (0, (1 << bits) - 1)
    number = rng.choice([low, high, rng.randint(low, high)]) if high >= low else 0
    return hex(number) if rng.random() < 0.2 else str(number)


def some_item(rng, index, bits):
    kind = some_type(rng)
    shape = [str(rng.choice([0, 1, 2, 3, 5, 40])) for _ in range(rng.choice([0, 0, 1, 1, 2]))]
    if shape and rng.random() < (0.2 if ":" in kind else 0.02):
        shape[0] = "?"
    if kind[0] == "c":
        text = "".join(rng.choice("SPEAD 04\n") for _ in range(rng.randint(0, 60)))
        shape = [rng.choice([str(len(text)), "?"]) if rng.random() < 0.95 else "3"]
        value = text + "ß" * (rng.random() < 0.05)
    else:
        n = rng.choice([1, 2, 6])
        if rng.random() < 0.97 and "?" not in shape:
            n = min(n, math.prod(map(int, shape)))
        value = " ".join(some_number(rng, kind) for _ in range(n))
    highest = (1 << 63 - bits) - 1
    usual = min(0x1000 + index, highest - 1 - index)
    return {
        "name": f"item {index}" + "µ" * (rng.random() < 0.01),
        "description": rng.choice(["", "What it is"]),
        "id": hex(usual if rng.random() < 0.99 else rng.choice([0, 5, 6, highest, highest + 1])),
        "type": kind,
        "shape": ", ".join(shape),
        "value": value,
    }  # fmt: skip


def some_heap(rng):
    bits = rng.choice([*[40, 48] * 6, 8, 16, 24, 32, 56])
    n = rng.choice([0, 1, 2, 2, 3, rng.randint(0, 20)])
    sizes = [56, 57, 63, 64, 72, 80, 128, 200, 1472, 8972] if rng.random() < 0.97 else [8, 55]
    return {
        "addressBits": bits,
        "packetSize": str(rng.choice(sizes)),
        "heapCount": str(rng.choice([0, 1, 7, rng.getrandbits(40), rng.getrandbits(64)])),
        "descriptors": rng.random() < 0.4,
        "items": [some_item(rng, index, bits) for index in range(n)],
    }


def python_number(text):
    try:
        return int(text, 0)
    except ValueError:
        return float(text)


def python_value(item, shape):
    """What the page's words for a value mean: numbers are repeated until the shape is full."""
    if item["type"].startswith("c"):
        return item["value"]
    numbers = list(map(python_number, item["value"].split()))
    wanted = int(np.prod([1 if size is None else size for size in shape], dtype=object))
    if None not in shape and numbers and len(numbers) <= wanted:
        numbers = [numbers[i % len(numbers)] for i in range(wanted)]
    flat = np.empty(len(numbers), dtype=object)
    flat[:] = numbers
    try:
        return flat.reshape([-1 if size is None and wanted else size or 0 for size in shape])[()]
    except ValueError:
        return flat  # whose shape is refused


def from_the_core(heap):
    """The packets of a heap in hexadecimal; None where it is refused."""
    group = ItemGroup(flavour=Flavour(heap_address_bits=heap["addressBits"]))
    try:
        for item in heap["items"]:
            sizes = [one.strip() for one in item["shape"].split(",") if one.strip()]
            shape = [None if one == "?" else int(one) for one in sizes]
            letter, colon, bits = item["type"].partition(":")
            kind = {"format": [(letter, int(bits))]} if colon else {"dtype": item["type"]}
            value = python_value(item, shape)
            words = item["name"], item["description"]
            group.add_item(int(item["id"], 0), *words, shape, value=value, **kind)
        made = group.get_heap(descriptors="all" if heap["descriptors"] else "none", data="all")
        cut = PacketGenerator(made, int(heap["heapCount"]), int(heap["packetSize"]))
        return [packet.hex() for packet in cut]
    except ValueError:
        return None


@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(seed, marks=pytest.mark.thorough) for seed in range(1, 8))]
)
def test_the_page_cuts_any_heap_into_the_cores_packets_and_refuses_what_it_refuses(script, seed):
    rng = random.Random(seed)
    heaps = [some_heap(rng) for _ in range(500)]
    expected = list(map(from_the_core, heaps))
    assert 50 < expected.count(None) < 300, "there is too little of one kind"
    for heap, want, got in zip(heaps, expected, script.evaluate(_CUT, heaps), strict=True):
        assert got == want, heap


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
    dissector.get_by_role("link", name="Packet 2").click()
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
    dissector.get_by_role("link", name="Packet 3").focus()
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
    assert boxes == fields.locator(".strip a").count()
    said = fields.locator(".said").inner_text()
    assert f"The first {boxes} are shown" in said
    assert int(said.split()[0]) > boxes
