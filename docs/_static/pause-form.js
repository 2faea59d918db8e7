/* SPDX-License-Identifier: BSD-3-Clause */
/* How long a socket's buffer lasts, which the reader chooses, and how many heaps fit into it. */
"use strict";

Play.fill("pause", (place, one) => {
    const {bytes, count} = Play;
    const few = (n) => (n < 100 ? String(Number(n.toPrecision(2))) : count(Math.round(n)));
    const ms = (seconds) => `${few(1e3 * seconds)}\u00a0ms`;
    const rated = (rate) => (rate < 1 ? `${1e3 * rate}\u00a0MB/s` : `${rate}\u00a0GB/s`);

    function draw({buffer, rate, packet, heap}) {
        const {heaps, length} = Packets.waiting({buffer, packet, heap});
        const lasts = heaps * length / (1e9 * rate), takes = length / (1e9 * rate), scale = Math.max(lasts, takes);
        one(".said").textContent = `${bytes(buffer)} / ${rated(rate)} = ${ms(buffer / (1e9 * rate))}. By what the kernel counts`
            + ` for packets of ${count(packet)} bytes, about ${ms(lasts)}: ${few(heaps)} heaps of ${bytes(heap)}.`;
        one(".blocks").replaceChildren(Play.block("How long the buffer lasts, and how long a heap takes to arrive", [
            ["buffer", [[0, lasts / scale, "full", ms(lasts)]]],
            ["heap", [[0, takes / scale, "shorter", ms(takes)]]],
        ]));
    }

    Play.stops(place, {buffer: bytes, rate: rated, packet: (n) => count(n, "byte"), heap: bytes}, draw);
});
