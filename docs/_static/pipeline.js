/* SPDX-License-Identifier: BSD-3-Clause */
/* Two threads: a program that prepares heaps, and a network thread that sends them.

   This is a model of them, which knows no page, and how it is held against recorded runs. All times
   are in one unit, whichever it is. */
"use strict";

const Pipeline = (() => {
    /* When each heap is prepared and sent, with so many in flight; 1 is in turns.

       A network thread that has found no heap sleeps, and takes the time of `wake` to begin with the
       next one. The program goes on `back` after the heap that it waits for has been sent. */
    function layOut({prepare, send, wake, back, depth, heaps}) {
        const rows = [];
        let now = 0, free = -Infinity;
        for (let heap = 0; heap < heaps; heap++) {
            const queued = now + prepare;
            const first = queued > free ? queued + wake : free;
            free = first + send;
            rows.push({prepare: now, queued, first, last: free, resumed: Infinity});
            now = queued;
            if (heap - depth + 1 >= 0) now = goOn(rows[heap - depth + 1], now, back);
        }
        for (const row of rows.slice(Math.max(0, heaps - depth + 1))) now = goOn(row, now, back);
        return rows;
    }

    const goOn = (row, now, back) => (row.resumed = Math.max(row.last, now) + back);

    /* From when to when each heap is sent: of two in one call, the second's turn comes after the first's. */
    const sent = (rows) => rows.map((row, i) => [Math.max(row.first, rows[i - 1]?.last ?? 0), row.last]);

    const end = (rows) => Math.max(...rows.map((row) => row.resumed));

    /* The time that a heap takes, when it has gone on like this for a while. */
    function period(times) {
        const rows = layOut({...times, heaps: 200});
        return (rows[199].last - rows[99].last) / 100;
    }

    function median(values) {
        const sorted = [...values].sort((one, other) => one - other), half = sorted.length >> 1;
        return sorted.length % 2 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
    }

    /* A recorded run without its cold start, as rows that begin at 0. */
    function steady(run) {
        const begin = run.prepare[run.steady];
        return run.prepare.slice(run.steady).map((_, i) => Object.fromEntries(
            ["prepare", "queued", "first", "last", "resumed"].map(
                (name) => [name, run[name][run.steady + i] - begin])));
    }

    /* The median times of a recorded run. Of two heaps that are sent with one call, the second's time
       begins when the first one has been sent. How long waking up takes is asked of the cold start,
       too: later there may be no heap for which the network thread had to be woken. */
    function measured(run) {
        const {depth, queued, first, last} = run;
        const before = (heap) => last[heap - 1] ?? -Infinity;
        const all = [...queued.keys()], counted = all.slice(run.steady);
        const woken = all.filter((heap) => queued[heap] >= before(heap));
        const waited = counted.slice(0, counted.length - depth + 1);
        return {
            depth,
            prepare: median(counted.map((heap) => queued[heap] - run.prepare[heap])),
            send: median(counted.map((heap) => last[heap] - Math.max(first[heap], before(heap)))),
            wake: median(woken.map((heap) => first[heap] - queued[heap])),
            back: median(waited.map(
                (heap) => run.resumed[heap] - Math.max(last[heap], queued[heap + depth - 1]))),
        };
    }

    /* By what part of the recorded time the model's end is off, given the run's median times. */
    function deviation(run) {
        const rows = steady(run);
        return end(layOut({...measured(run), heaps: rows.length})) / end(rows) - 1;
    }

    return {layOut, sent, end, period, steady, measured, deviation};
})();
