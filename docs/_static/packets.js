/* SPDX-License-Identifier: BSD-3-Clause */
/* How the sender's core cuts heaps into packets, and hands these over in messages and system calls. */
"use strict";

const Packets = (() => {
    const PREFIX = 40, POINTER = 8;  // the header with the four pointers of every packet; another one
    const MAX_POINTERS = 65535 - 4;
    const MAX_MERGED = 65440, MAX_SEGMENTS = 128;  // what a message holds
    const MAX_MESSAGES = 64;  // in a system call
    const BATCH_PACKETS = 252, BATCH_SCRATCH = 32768;  // what the core makes before it sends
    const COPY_BELOW = 256;  // bytes of payload that are copied into that scratch memory

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

    /* The size with which all packets of a heap are equal; the given one where there is none. */
    function equalSize(size, pointers, payload) {
        const spread = payload + POINTER * pointers, n = Math.ceil(spread / (whole(size) - PREFIX));
        const equal = PREFIX + spread / n;
        return n > 1 && spread % (8 * n) === 0 && equal >= PREFIX + POINTER * pointers + 8 ? equal : size;
    }

    /* How many packets go into each message, where segmentation offload works. */
    function messages(sizes) {
        const runs = [];
        for (let at = 0; at < sizes.length;) {
            let n = 1, length = sizes[at];
            while (at + n < sizes.length && n < MAX_SEGMENTS && sizes[at + n - 1] === sizes[at]
                && sizes[at + n] <= sizes[at] && length + sizes[at + n] <= MAX_MERGED)
                length += sizes[at + n++];
            runs.push(n);
            at += n;
        }
        return runs;
    }

    /* How packets that are queued at once are sent: packets of each message, and how many calls. */
    function send(packets) {
        const runs = [];
        let calls = 0;
        for (let at = 0, end = 0; at < packets.length; at = end) {
            for (let used = 0; end < packets.length && end - at < BATCH_PACKETS && used < BATCH_SCRATCH; end++) {
                const {size, payload} = packets[end];
                used += 8 * Math.ceil((payload < COPY_BELOW ? size : size - payload) / 8);
            }
            const batch = messages(packets.slice(at, end).map((one) => one.size));
            runs.push(...batch);
            calls += Math.ceil(batch.length / MAX_MESSAGES);
        }
        return {runs, calls};
    }

    /* What a call does that queues `heaps` of the chapters' heaps at once: a timestamp, which is in its
       pointer, and so many bytes of samples. */
    function group({heap, packet, equal, heaps}) {
        const size = equal ? equalSize(packet, 2, heap) : packet, packets = cut(size, 2, heap);
        return {packets, ...send(Array(heaps).fill(packets).flat())};
    }

    /* How many heaps can wait in a receiver's socket, and how long each is, in bytes. The kernel doubles
       a buffer when it grants it, and counts the memory of each packet: with headers and notes, and up
       to the next power of two. Linux 6.18 does so over loopback with packets that come one by one. */
    function waiting({buffer, packet, heap}) {
        const memory = (size) => 2 ** Math.ceil(Math.log2(size + 384)) + 256;
        const packets = cut(packet, 2, heap), sum = (of) => packets.reduce((all, one) => all + of(one.size), 0);
        return {heaps: 2 * buffer / sum(memory), length: sum((size) => size)};
    }

    return {leastPayload, cut, group, waiting};
})();
