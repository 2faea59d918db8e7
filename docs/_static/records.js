/* SPDX-License-Identifier: BSD-3-Clause */
/* A reader's own record: its medians by series and size, with their intervals, as Python has them.

   As there, warm-ups do not count, of attempts the last one stands, and what failed has no median. */
"use strict";

const Records = (() => {
    const SCHEMA = 4;  // of records
    const SAMPLES = ["sample", "sent", "received"];  // the first until schema 3
    const LARGEST = 64 * 2 ** 20;  // bytes of a file
    const FEWEST = 6, RESAMPLES = 2000;  // of an interval
    const IN_A_ROW = 3, FORGIVEN = 1, NARROW = 2 ** (1 / 8), KEPT = 0.95;  // of a search

    const ascending = (one, other) => one - other;
    const mean = ([one, other]) => (one + other) / 2;
    const median = (sorted) => mean([sorted[(sorted.length - 1) >> 1], sorted[sorted.length >> 1]]);

    /* Random numbers, the same each time: a linear congruence that Numerical Recipes has. */
    function* random() {
        for (let state = 1; ; yield state / 2 ** 32)
            state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    }

    function quantile(sorted, part) {
        const at = part * (sorted.length - 1), below = Math.floor(at);
        return sorted[below] + (at - below) * (sorted[Math.ceil(at)] - sorted[below]);
    }

    /* Median, ends of the 95 % bootstrap interval, or of the range of few values, and how many. */
    function estimate(values) {
        const sorted = [...values].sort(ascending), n = sorted.length;
        if (n < FEWEST) return [median(sorted), sorted[0], sorted[n - 1], n];
        const numbers = random();
        const draw = () => sorted[Math.floor(n * numbers.next().value)];
        const medians = Array.from({length: RESAMPLES},
            () => median(sorted.map(draw).sort(ascending))).sort(ascending);
        return [median(sorted), quantile(medians, 0.025), quantile(medians, 0.975), n];
    }

    const rate = ({failure, payload_bytes, elapsed_ns}) =>
        failure || !(payload_bytes > 0) ? NaN : payload_bytes / (elapsed_ns / 1e9) / 1e6;

    /* The rate that a search has found: that of the middle one of the last runs at the highest rate
       that was held. It is null where the search is not over. */
    function found(search) {
        if (search.some((run) => run.failure)) return NaN;
        const runs = [...search].sort((one, other) => (one.run ?? 0) - (other.run ?? 0));
        const lost = (run) => run.received_dropped || run.received_heaps !== run.heaps;
        const asked = [...new Set(runs.map((run) => run.asked_bytes_per_s))].sort(ascending);
        const at = (wanted) => runs.filter((run) => run.asked_bytes_per_s === wanted);
        const isLost = (wanted) => at(wanted).filter(lost).length > FORGIVEN;
        const best = asked.findLast((wanted) => !isLost(wanted)), least = asked.find(isLost);
        if (best === undefined) return NaN;
        const last = at(best).slice(-IN_A_ROW).sort((one, other) => rate(one) - rate(other));
        if (last.length < IN_A_ROW || last.some(lost)) return null;
        const middle = last[(IN_A_ROW - 1) >> 1];
        const isOver = least / best <= NARROW * (1 + 1e-6) || rate(middle) * 1e6 < KEPT * best;
        return isOver ? rate(middle) : null;
    }

    function refuse(why) {
        throw new Error(`${why}. A record is needed, results/….jsonl, as make bench writes it.`);
    }

    function object(line, number) {
        let one;
        try { one = JSON.parse(line); } catch { /* it is none */ }
        return one instanceof Object ? one : refuse(`its line ${number} is not a JSON object`);
    }

    /* The text of a file that may be any. What is no text has these signs where it was decoded. */
    async function text(file) {
        if (file.size > LARGEST) refuse(`it is larger than ${LARGEST / 2 ** 20} MiB`);
        const words = await file.text().catch(() => refuse("the browser cannot read it"));
        if (/[\0\ufffd]/.test(words)) refuse("it is not text");
        return words.trim() ? words : refuse("it is empty");
    }

    async function read(file) {
        const [header, ...lines] = (await text(file)).split("\n").flatMap(
            (line, n) => line.trim() ? [object(line, n + 1)] : []);
        if (header.tool !== "spead_tutorial" || !header.schema) refuse("it has no header of a record");
        if (header.schema > SCHEMA) refuse("it is newer than this page");
        const standing = new Map(), rounds = new Map(), rates = new Map();
        for (const one of lines) if (SAMPLES.includes(one.record) && !one.warm_up)
            standing.set(JSON.stringify([one.case, one.round, one.run ?? 0]), one);
        for (const one of standing.values()) {
            const variant = [one.random && "random", one.variant].filter(Boolean).join(", ");
            const searched = one.asked_bytes_per_s ? ["searched"] : [];
            const key = [one.implementation, one.language, one.program, variant, one.packet_size,
                ...searched, one.heap_size].join("|");
            const round = JSON.stringify([key, one.round]);
            rounds.set(round, [...rounds.get(round) ?? [], {...one, key}]);
        }
        for (const [{key, ...first}, ...more] of rounds.values()) {
            const some = [first, ...more];
            const value = first.asked_bytes_per_s ? found(some) : rate(first);
            if (value !== null) rates.set(key, [...rates.get(key) ?? [], value]);
        }
        const known = [...rates].filter(([, some]) => some.every(Number.isFinite));
        return new Map(known.map(([key, some]) => [key, estimate(some)]));
    }

    const spread = (n) => (n < FEWEST ? "range " : "");

    return {read, estimate, spread};
})();
