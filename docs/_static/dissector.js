/* SPDX-License-Identifier: BSD-3-Clause */
/* A heap that the reader types in, cut into packets as the sender cuts it.

   A plain script and no module, as the site is also read from files, where browsers load none. It
   knows no page. The rules are those of explanation/wire.md. */
"use strict";

const Dissector = (() => {
    const PREFIX = 40;  // the header and the four pointers of every packet
    const MIN_PACKET = 56, MAX_PACKET = 65507;  // what IPv4 carries
    const MOST = 1 << 20;  // bytes of a heap: more is no pleasure to look at
    const ID = {null: 0n, descriptor: 5n};

    /* What the sender would refuse, too. `where` is the field's name, `row` the item's number. */
    class Refusal extends Error {
        constructor(where, message, row = null) {
            super(message);
            Object.assign(this, {where, row});
        }
    }

    const low = (bits) => (1n << BigInt(bits)) - 1n;
    const plural = (n, word) => `${n} ${word}${n === 1 ? "" : "s"}`;

    function bigEndian(value, n) {
        const bytes = [];
        for (let i = n - 1; i >= 0; i--) bytes.push(Number((value >> BigInt(8 * i)) & 255n));
        return bytes;
    }

    const joined = (pieces) => Uint8Array.from(pieces.flatMap((one) => [...one]));

    function ascii(text, where, what) {
        if (/[^\x00-\x7f]/.test(text)) throw new Refusal(where, `${what} has to be ASCII`);
        return Uint8Array.from(text, (letter) => letter.charCodeAt(0));
    }

    function whole(text, where, what) {
        const found = /^\s*([-+]?)(0x[0-9a-f]+|\d+)\s*$/i.exec(text);
        if (!found) throw new Refusal(where, `${what} has to be a whole number, not '${text}'`);
        return (found[1] === "-" ? -1n : 1n) * BigInt(found[2]);
    }

    // ---- Types, shapes, values ----

    /* A type: NumPy's name for one, as in <i2, or a format of one field, as in u:40. */
    function parseType(text) {
        const numpy = /^([<>|]?)([iuf])([1248])$/.exec(text.trim());
        if (numpy && (numpy[2] !== "f" || numpy[3] > 2)) {
            const [, order, letter, size] = numpy;
            const little = order !== ">";
            const mark = size === "1" ? "|" : little ? "<" : ">";
            return {letter, bits: 8 * size, little, descr: mark + letter + size};
        }
        const format = /^([uifc]):(\d{1,9})$/.exec(text.trim());
        if (!format) throw new Refusal("type", `'${text}' is no type: one is like i1, <u2 or u:40`);
        const letter = format[1], bits = Number(format[2]);
        if (bits < 1) throw new Refusal("type", "a field has at least one bit");
        if (letter === "f" && bits !== 32 && bits !== 64)
            throw new Refusal("type", "floating point has 32 or 64 bits");
        if (letter === "c" && bits !== 8) throw new Refusal("type", "a character has 8 bits");
        return {letter, bits, little: false, descr: null};
    }

    /* A shape: one number for each dimension; ? is the one that varies, null in what is returned. */
    function parseShape(text, type) {
        const shape = text.split(",").map((one) => one.trim()).filter(Boolean).map((one) => {
            if (one === "?") return null;
            const size = whole(one, "shape", "a dimension");
            if (size < 0n) throw new Refusal("shape", "a dimension is not negative");
            return size;
        });
        const varying = shape.filter((one) => one === null).length;
        if (varying > 1) throw new Refusal("shape", "only one dimension can vary");
        if (varying && type.descr !== null)
            throw new Refusal("shape", "only an item with a format, as u:8, can vary");
        return shape;
    }

    /* How many numbers a value has; those that are given are repeated until there are so many. */
    function elements(shape, given) {
        const known = shape.reduce((product, one) => (one === null ? product : product * one), 1n);
        if (!shape.includes(null)) {
            if (known > BigInt(8 * MOST)) throw new Refusal("shape", "that is too much to look at");
            if (BigInt(given) > known)
                throw new Refusal("value", `${plural(given, "number")} given, but the shape has ${known}`);
            if (known && !given) throw new Refusal("value", "it has no value to send");
            return Number(known);
        }
        if (known === 0n ? given : BigInt(given) % known)
            throw new Refusal("value", `${plural(given, "number")} given: no multiple of ${known}`);
        return given;
    }

    /* 1 2 3, or 1, 2, 3; and 0..15 is all from 0 to 15. */
    function numbers(text) {
        const given = [];
        for (const word of text.split(/[\s,]+/).filter(Boolean)) {
            const range = /^(-?\d+)\.\.(-?\d+)$/.exec(word);
            if (!range) given.push(word);
            else {
                const [first, last] = [BigInt(range[1]), BigInt(range[2])];
                if (last - first >= BigInt(MOST)) throw new Refusal("value", `${word} is too many`);
                for (let one = first; one <= last; one++) given.push(String(one));
            }
        }
        return given;
    }

    function float(text, type) {
        const known = {nan: NaN, inf: Infinity, "-inf": -Infinity}[text.toLowerCase()];
        const value = known ?? Number(text);
        if (known === undefined && !Number.isFinite(value) || text.startsWith("0x"))
            throw new Refusal("value", `'${text}' is no number, or too large a one`);
        const view = new DataView(new ArrayBuffer(type.bits / 8));
        if (type.bits === 64) view.setFloat64(0, value, type.little);
        else {
            if (Number.isFinite(value) && !Number.isFinite(Math.fround(value)))
                throw new Refusal("value", `${text} is out of range for ${type.descr ?? "f:32"}`);
            view.setFloat32(0, value, type.little);
        }
        return new Uint8Array(view.buffer);
    }

    function integer(text, type) {
        const signed = type.letter === "i", bits = BigInt(type.bits);
        const value = whole(text, "value", "each number");
        const least = signed ? -(1n << (bits - 1n)) : 0n;
        const most = signed ? (1n << (bits - 1n)) - 1n : low(bits);
        if (value < least || value > most)
            throw new Refusal("value", type.bits > 64 ? `it has more than ${type.bits} bits`
                : `${value} is out of range: ${least} to ${most}`);
        return BigInt.asUintN(type.bits, value);
    }

    /* Numbers bit by bit, without gaps; the last byte is filled up with zeros. */
    function packed(values, bits) {
        const all = values.map((one) => one.toString(2).padStart(bits, "0")).join("");
        return Uint8Array.from(all.match(/.{1,8}/g) ?? [], (one) => parseInt(one.padEnd(8, "0"), 2));
    }

    function valueBytes(type, shape, text) {
        if (type.letter === "c") {
            if (shape.length !== 1) throw new Refusal("shape", "a text has one dimension");
            const [size] = shape, letters = ascii(text, "value", "a text");
            if (size !== null && size !== BigInt(letters.length))
                throw new Refusal("value", `it has ${plural(letters.length, "character")}, not ${size}`);
            return letters;
        }
        const given = numbers(text);
        const n = elements(shape, given.length);
        if (n * type.bits > 8 * MOST) throw new Refusal("shape", "that is too much to look at");
        if (type.letter === "f") {
            const known = given.map((one) => float(one, type));
            return joined(Array.from({length: n}, (_, i) => known[i % known.length]));
        }
        const known = given.map((one) => integer(one, type));
        const all = Array.from({length: n}, (_, i) => known[i % known.length]);
        if (type.bits % 8) return packed(all, type.bits);
        const bytes = known.map((one) => bigEndian(one, type.bits / 8));
        if (type.little) bytes.forEach((one) => one.reverse());
        return joined(Array.from({length: n}, (_, i) => bytes[i % bytes.length]));
    }

    // ---- Items ----

    function checkId(text, bits) {
        const id = whole(text, "id", "an id");
        if (id <= 6n)
            throw new Refusal("id", "0 to 6 are the protocol's own: choose 7 or more, by convention 0x1000");
        if (id > low(63 - bits))
            throw new Refusal("id", `with ${bits} address bits, an id is 0x${low(63 - bits).toString(16)} at most`);
        return id;
    }

    const pointer = (immediate, id, value, bits) =>
        bigEndian((immediate ? 1n << 63n : 0n) | (id << BigInt(bits)) | value, 8);

    const header = (n, bits) => [0x53, 4, 8 - bits / 8, bits / 8, 0, 0, n >> 8, n & 255];

    const prefix = (n, bits, values) => [
        header(n + 4, bits),
        ...values.map((value, i) => pointer(true, BigInt(i + 1), BigInt(value), bits)),
    ];

    /* What a descriptor is made of: a packet of its own, without the places of others. */
    function descriptor(item, bits) {
        const {type, shape, id} = item;
        if (id > low(bits)) throw new Refusal("id", `to be described, it needs ${bits} bits at most`);
        const formatBytes = 8 - bits / 8, sizeBytes = bits / 8;
        if (type.descr === null && BigInt(type.bits) > low(8 * formatBytes))
            throw new Refusal("type", `a descriptor of this flavour has no room for ${type.bits} bits`);
        for (const size of shape)
            if (size !== null && size > low(8 * sizeBytes))
                throw new Refusal("shape", `a descriptor of this flavour has no room for ${size}`);
        const sizes = shape.length === 1 ? `${shape[0]},` : shape.join(", ");
        const numpy = `{'descr': '${type.descr}', 'fortran_order': False, 'shape': (${sizes})}`;
        const parts = [
            [0x10n, ascii(item.name, "name", "a name in a descriptor")],
            [0x11n, ascii(item.description ?? "", "name", "a description")],
            [0x13n, type.descr === null
                ? [type.letter.charCodeAt(0), ...bigEndian(BigInt(type.bits), formatBytes)] : []],
            [0x12n, shape.flatMap((size) => [size === null ? 1 : 0, ...bigEndian(size ?? 0n, sizeBytes)])],
            ...(type.descr === null ? [] : [[0x15n, ascii(numpy, "type", "")]]),
        ];
        const payload = joined(parts.map(([, bytes]) => bytes));
        if (BigInt(payload.length) > low(bits))
            throw new Refusal("name", `its descriptor is longer than ${bits} address bits reach`);
        let at = 0;
        const pointers = parts.map(([part, bytes]) => {
            at += bytes.length;
            return pointer(false, part, BigInt(at - bytes.length), bits);
        });
        const first = prefix(parts.length + 1, bits, [1, payload.length, 0, payload.length]);
        return joined([...first, pointer(true, 0x14n, id, bits), ...pointers, payload]);
    }

    function parseItem(row, bits) {
        const type = parseType(row.type), shape = parseShape(row.shape, type);
        const item = {...row, id: checkId(row.id, bits), type, shape};
        item.bytes = valueBytes(type, shape, row.value);
        item.immediate = !shape.includes(null) && type.bits % 8 === 0 && item.bytes.length <= bits / 8;
        return item;
    }

    /* All that has a pointer, in its order, and the payload that they point into. */
    function layOut(spec) {
        const bits = spec.addressBits, entries = [], known = new Set();
        let length = 0;
        const add = (id, name, bytes, immediate) => {
            if (!immediate && BigInt(length + bytes.length) > low(bits))
                throw new Refusal("flavour", `the heap is longer than ${bits} address bits reach`);
            entries.push({id, name, bytes: immediate ? null : bytes, immediate,
                value: immediate ? BigInt(`0x0${hex(bytes, "")}`) : BigInt(length)});
            length += immediate ? 0 : bytes.length;
        };
        spec.items.forEach((row, index) => {
            try {
                const item = parseItem(row, bits);
                for (const one of [`${item.id}`, `'${item.name}'`]) {
                    if (known.has(one)) throw new Refusal("id", `a second item with the same name or id`);
                    known.add(one);
                }
                if (spec.descriptors)
                    add(ID.descriptor, `descriptor of ${item.name}`, descriptor(item, bits), false);
                add(item.id, item.name, item.bytes, item.immediate);
            } catch (error) {
                if (error instanceof Refusal) error.row = index;
                throw error;
            }
        });
        if (length > MOST) throw new Refusal("shape", "that is too much to look at", 0);
        return {entries, length};
    }

    function checkNumbers(spec) {
        const size = Number(whole(String(spec.packetSize), "packetSize", "a packet size"));
        const count = whole(String(spec.heapCount), "heapCount", "a heap count");
        if (size < MIN_PACKET)
            throw new Refusal("packetSize", `${MIN_PACKET} bytes at least: the headers, and 8 of payload`);
        if (size > MAX_PACKET)
            throw new Refusal("packetSize", `${MAX_PACKET} bytes at most: more does not fit a datagram`);
        if (count < 0n || count > low(64)) throw new Refusal("heapCount", "it is not negative, and has 64 bits at most");
        return {size: size - size % 8, count};
    }

    // ---- Packets ----

    /* The packets of a heap, each with its bytes and with its parts, which say what they are. */
    function packets(spec) {
        const bits = spec.addressBits, {size, count} = checkNumbers(spec);
        const {entries, length} = layOut(spec);
        const needed = Packets.leastPayload(size, entries.length);
        const pieces = entries.filter((one) => !one.immediate);
        if (length < needed) {  // each packet carries something, and a pointer says what is not data
            const padding = {id: ID.null, name: "padding", bytes: new Uint8Array(needed - length),
                immediate: false, value: BigInt(length)};
            entries.push(padding);
            pieces.push(padding);
        }
        const total = Math.max(length, needed);
        if (BigInt(total) > low(bits))
            throw new Refusal("flavour", `the heap is longer than ${bits} address bits reach`);
        if (total / (size - PREFIX) > 10000)
            throw new Refusal("packetSize", "that is too many packets to look at: choose larger ones");
        const payload = joined(pieces.map((one) => one.bytes));
        const cut = [];
        let sent = 0, offset = 0;
        for (const {pointers, payload: n} of Packets.cut(size, entries.length, total)) {
            const here = entries.slice(sent, sent + pointers);
            const numbers = [count & low(bits), total, offset, n];
            const parts = [
                ...headerParts(numbers, here, bits),
                ...payloadParts(pieces, payload, offset, offset + n),
            ];
            cut.push({bytes: joined(parts.map((one) => one.bytes)), parts, offset, payload: n});
            sent += pointers;
            offset += n;
        }
        return cut;
    }

    function headerParts(numbers, here, bits) {
        const [first, ...four] = prefix(here.length, bits, numbers);
        const names = ["heap count", "heap length", "payload offset", "payload length"];
        return [
            {kind: "header", bytes: first, what: "header",
                says: `SPEAD-64-${bits}, ${plural(here.length + 4, "item pointer")}`},
            ...four.map((bytes, i) => (
                {kind: "pointer", bytes, what: names[i], says: String(numbers[i])})),
            ...here.map((one) => ({
                kind: "pointer", bytes: pointer(one.immediate, one.id, one.value, bits),
                what: one.name,
                says: `0x${one.id.toString(16)}, ${one.immediate ? "immediate:" : "at byte"} ${one.value}`,
            })),
        ];
    }

    function payloadParts(pieces, payload, begin, end) {
        const parts = [];
        let at = 0;
        for (const one of pieces) {
            const first = Math.max(at, begin), last = Math.min(at + one.bytes.length, end);
            at += one.bytes.length;
            if (first >= last) continue;
            const kind = {[ID.null]: "padding", [ID.descriptor]: "descriptor"}[one.id] ?? "value";
            const bytes = payload.subarray(first, last);
            const says = `bytes ${first} to ${last - 1} of the heap's payload`;
            parts.push({kind, bytes, what: one.name,
                says: kind === "descriptor" ? `${says}; letters in it: ${letters(bytes)}` : says});
        }
        return parts;
    }

    /* Letters in bytes, where there are several in a row. */
    const letters = (bytes) =>
        String.fromCharCode(...bytes).match(/[\x20-\x7e]{3,}/g)?.join(" ") ?? "none";

    const hex = (bytes, between = " ") =>
        Array.from(bytes, (one) => one.toString(16).padStart(2, "0")).join(between);

    return {Refusal, packets, hex};
})();
