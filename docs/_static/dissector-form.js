/* SPDX-License-Identifier: BSD-3-Clause */
/* The form for dissector.js: what is typed is cut up at once, and what is refused said beside its field. */
"use strict";

Play.fill("dissector", (place, one) => {
    const {make} = Play;
    const MOST_SHOWN = 128;  // bytes of a part
    const MOST_PACKETS = 200;  // of a heap: a page with thousands is slow, and nobody looks at them
    const [flavour, packetSize, heapCount, descriptors] =
        ["flavour", "packetSize", "heapCount", "descriptors"].map((where) => one(`[data-where=${where}]`));
    const rows = one(".items"), add = one("form > button"), said = one(".said");
    const shown = one(".packets");
    let serial = 0, added = 0;  // fields, and items that the reader has added
    const opened = new Set([0]);  // packets that are to be seen, also after a change

    /* A control has its words before it, and the place of its error behind it. */
    function tie(control) {
        const id = `dissector-${control.dataset.where}-${serial++}`, error = control.nextElementSibling;
        control.id = control.previousElementSibling.htmlFor = id;
        error.id = `${id}-error`;
        control.setAttribute("aria-describedby", error.id);
    }

    function row(values) {
        const group = one("template.item").content.firstElementChild.cloneNode(true);
        for (const control of group.querySelectorAll("input")) {
            control.value = values[control.dataset.where] ?? control.value;
            tie(control);
        }
        group.querySelector("button").addEventListener("click", () => {
            group.remove();
            name();
            add.focus();
            cut();
        });
        rows.append(group);
        name();
        return group;
    }

    /* Groups, and the buttons that remove them, are told from one another by their number. */
    const name = () => [...rows.children].forEach((one, i) => {
        one.querySelector("legend").textContent = `Item ${i + 1}`;
        one.querySelector("button").setAttribute("aria-label", `Remove item ${i + 1}`);
    });

    const read = () => ({
        addressBits: Number(flavour.value),
        packetSize: packetSize.value,
        heapCount: heapCount.value,
        descriptors: descriptors.checked,
        items: [...rows.children].map((group) => Object.fromEntries(
            [...group.querySelectorAll("input")].map((one) => [one.dataset.where, one.value]))),
    });

    function refuse({where, row, message}) {
        const area = row === null ? place : rows.children[row];
        const control = area.querySelector(`[data-where=${where}]`)
            ?? place.querySelector(`[data-where=${where}]`);
        control.setAttribute("aria-invalid", "true");
        control.nextElementSibling.textContent = message;
        said.textContent = `There is no packet: ${message}.`;
    }

    function table(packet, number) {
        let at = 0;
        const body = make("tbody", {}, ...packet.parts.map((part) => {
            const bytes = Dissector.hex(part.bytes.slice(0, MOST_SHOWN));
            const more = part.bytes.length - MOST_SHOWN;
            at += part.bytes.length;
            return make("tr", {className: part.kind},
                make("td", {className: "number"}, String(at - part.bytes.length)),
                make("td", {className: "bytes"}, more > 0 ? `${bytes} … and ${more} more` : bytes),
                make("td", {}, part.what),
                make("td", {}, part.says));
        }));
        const head = ["offset", "bytes", "part", "what it says"].map((words, i) =>
            make("th", {scope: "col", className: ["number", "bytes", "", ""][i]}, words));
        return make("table", {className: "table", "aria-label": `Packet ${number}`},
            make("thead", {}, make("tr", {}, ...head)), body);
    }

    function box(packet, i, n) {
        const words = `Packet ${i + 1} of ${n}: ${packet.bytes.length} bytes, of which`
            + ` ${packet.payload} are payload from byte ${packet.offset} on`;
        const one = make("details", {open: opened.has(i)}, make("summary", {}, words), table(packet, i + 1));
        one.addEventListener("toggle", () => opened[one.open ? "add" : "delete"](i));
        return one;
    }

    function show(cut) {
        const total = cut.reduce((sum, one) => sum + one.bytes.length, 0);
        const packets = cut.length === 1 ? "One packet" : `${cut.length} packets`;
        said.textContent = `${packets}, ${total} bytes.`;
        if (cut.length > MOST_PACKETS) said.textContent += ` The first ${MOST_PACKETS} are shown.`;
        shown.replaceChildren(
            ...cut.slice(0, MOST_PACKETS).map((one, i) => box(one, i, cut.length)));
    }

    function cut() {
        for (const one of place.querySelectorAll("[aria-invalid]")) {
            one.removeAttribute("aria-invalid");
            one.nextElementSibling.textContent = "";
        }
        try {
            show(Dissector.packets(read()));
        } catch (error) {
            if (!(error instanceof Dissector.Refusal)) throw error;
            shown.replaceChildren();
            refuse(error);
        }
    }

    add.addEventListener("click", () => {
        const id = `0x${(0x1000 + added).toString(16)}`;
        const group = row({name: `item_${++added}`, id, shape: "8", value: "0..7"});
        group.querySelector("input").focus();
        cut();
    });
    row({name: "timestamp", id: "0x1600", type: "u:40", shape: "", value: "1000"});
    row({name: "adc_samples", id: "0x3300", type: "i1", shape: "4000", value: "0..99"});
    [flavour, packetSize, heapCount, descriptors].forEach(tie);
    one("form").addEventListener("input", cut);
    cut();
});
