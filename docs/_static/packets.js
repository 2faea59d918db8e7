/* SPDX-License-Identifier: BSD-3-Clause */
/* How the sender's core cuts heaps into packets, and hands these over in messages. */
"use strict";

const Packets = (() => {
    const PREFIX = 40, POINTER = 8;  // the header with the four pointers of every packet; another one
    const MAX_POINTERS = 65535 - 4;
    const MAX_MERGED = 65440, MAX_SEGMENTS = 128;  // what a message holds

    const whole = (size) => size - size % 8;
    const mostPointers = (size) => Math.min((whole(size) - PREFIX - 8) / POINTER, MAX_POINTERS);

    /* How many bytes of payload a heap has at least: its pointers need packets, and each carries some. */
    const leastPayload = (size, pointers) => 8 * Math.floor(pointers / mostPointers(size)) + 1;

    /* The packets of a heap: pointers, bytes of payload, and bytes in all. */
    function cut(size, pointers, payload) {
        const packets = [];
        while (pointers > 0 || payload > 0) {
            const here = Math.min(pointers, mostPointers(size)), header = PREFIX + POINTER * here;
            const carried = Math.min(payload, whole(size) - header);
            packets.push({pointers: here, payload: carried, size: header + carried});
            pointers -= here;
            payload -= carried;
        }
        return packets;
    }

    /* How many packets of a heap, which are equal but for the last, go into each message, where
       segmentation offload works. */
    function messages(sizes) {
        const runs = [];
        for (let at = 0; at < sizes.length;) {
            let n = 1, length = sizes[at];
            while (at + n < sizes.length && n < MAX_SEGMENTS && length + sizes[at + n] <= MAX_MERGED)
                length += sizes[at + n++];
            runs.push(n);
            at += n;
        }
        return runs;
    }

    return {leastPayload, cut, messages};
})();
