/* SPDX-License-Identifier: BSD-3-Clause */
/* Sizes of heaps and packets that the reader chooses, and the messages and system calls they make. */
"use strict";

Play.fill("messages", (place, one) => {
    const {bytes, count} = Play;
    const SHOWN = 5;  // messages
    const BATCH = 512 * 1024, GB = 1e9, ROOM = 65536;  // bytes: of a chapter's batch, and of a message
    const [equal, said, blocks] = ["#messages-equal", ".said", ".blocks"].map(one);

    /* What packets a heap is, in words. */
    function described(packets, wantsEqual) {
        const n = packets.length, first = packets[0].size, {size, payload} = packets[n - 1];
        if (n === 1) return `one packet of ${count(size)} bytes`;
        if (first === size) return `${count(n)} equal packets of ${count(size)} bytes`;
        return `${count(n)} packets: ${n === 2 ? "one" : `${count(n - 1)} equal ones`} of ${count(first)} bytes and`
            + ` a shorter one of ${count(size)}, ${count(payload)} of them payload`
            + (wantsEqual ? " (they cannot be cut equally)" : "");
    }

    function draw({heap, packet}) {
        const heaps = Math.max(1, Math.floor(BATCH / heap));
        const {packets, runs, calls} = Packets.group({heap, packet, heaps, equal: equal.checked});
        const inGB = (n) => count(Math.round(n * GB / (heaps * heap)));
        said.textContent = `A heap of ${bytes(heap)} is ${described(packets, equal.checked)}.`
            + ` One call for ${count(heaps, "heap")} sends ${count(runs.length, "message")}, in`
            + ` ${count(calls, "system call")}. For a GB, that is ${inGB(runs.length)} messages in ${inGB(calls)} system calls.`;
        let at = 0;
        const lines = runs.slice(0, SHOWN).map((n, i) => {
            let begin = 0;
            const bars = Array.from({length: n}, () => {
                const {size} = packets[at % packets.length];
                const kind = size < packets[0].size ? "shorter" : "full";
                begin += size;
                return [(begin - size) / ROOM, size / ROOM, kind, Math.floor(at++ / packets.length)];
            });
            return [`${i + 1}: ${count(n, "packet")}`, bars];
        });
        const all = runs.length > SHOWN ? `The first ${SHOWN} of ${count(runs.length)} messages` : "All messages";
        blocks.replaceChildren(Play.block(`${all}; packets have the numbers of their heaps`, lines));
    }

    const redraw = Play.stops(place, {heap: bytes, packet: (n) => count(n, "byte")}, draw);
    equal.addEventListener("input", redraw);
});
