/* SPDX-License-Identifier: BSD-3-Clause */
/* The form for pipeline.js: a slider for each time, and bars for when each thread works. */
"use strict";

Play.fill("pipeline", (place, one) => {
    const SHOWN = 6;  // heaps
    const runs = JSON.parse(one("script").textContent);
    const times = {prepare: 100, send: 100, wake: 16, back: 49, depth: 2};
    const choice = one("select"), said = one(".said"), blocks = one(".blocks");

    const written = (us) => (us < 1000 ? `${Math.round(us)} µs` : `${(us / 1000).toFixed(2)} ms`);

    const depthWords = (depth) => (depth === 1 ? "1, in turns" : depth);

    /* The slider of a time is at its root. */
    const sliders = Object.keys(times).map((name) => {
        const control = one(`#pipeline-${name}`);
        const [power, words] = name === "depth" ? [1, depthWords] : [2, written];
        const say = Play.slider(control, (at) => at ** power, words, (value) => {
            times[name] = value;
            draw();
        });
        return () => {
            control.value = times[name] ** (1 / power);
            say(times[name]);
        };
    });

    function block(title, rows, scale) {
        const bars = (intervals, kind) => intervals.map(([begin, finish], heap) =>
            [begin / scale, (finish - begin) / scale, kind, heap]);
        const prepared = rows.map((row) => [row.prepare, row.queued]);
        return Play.block(title, [["program", bars(prepared, "preparing")],
            ["network thread", bars(Pipeline.sent(rows), "sending")]]);
    }

    /* How the model does with the run that was chosen, and with the one that it does worst with. */
    function compare(run) {
        const off = (one) => `${(100 * Math.abs(Pipeline.deviation(one))).toFixed(1)} %`;
        const rows = Pipeline.steady(run), way = Pipeline.deviation(run) < 0 ? "less" : "more";
        const worst = runs.reduce((one, other) =>
            (Math.abs(Pipeline.deviation(other)) > Math.abs(Pipeline.deviation(one)) ? other : one));
        return ` This run took ${written(Pipeline.end(rows))} for ${rows.length} heaps; by the model, with`
            + ` the run's own median times, it is ${off(run)} ${way}. (Of all runs here, ${off(worst)} is the`
            + ` most that it is off: ${worst.name}.)`;
    }

    function draw() {
        const run = runs[choice.value];
        const inTurns = {...times, depth: 1}, depth = times.depth;
        const [slow, quick] = [inTurns, times].map(Pipeline.period);
        const drawn = [
            ["In turns", Pipeline.layOut({...inTurns, heaps: SHOWN})],
            ...(depth > 1 ? [[`${depth} heaps in flight`, Pipeline.layOut({...times, heaps: SHOWN})]] : []),
            ...(run ? [[`Recorded: ${run.name}`, Pipeline.steady(run).slice(0, SHOWN)]] : []),
        ];
        const scale = Math.max(1, ...drawn.flatMap(([, rows]) => rows.map((row) => row.last)));
        blocks.replaceChildren(...drawn.map(([title, rows]) => block(title, rows, scale)));
        const factor = quick > 0 ? (slow / quick).toFixed(2) : "1.00";
        said.textContent = `In turns, a heap takes ${written(slow)}; with ${depth} in flight,`
            + ` ${written(quick)}: ${factor} times as fast.` + (run ? compare(run) : "");
    }

    function replay() {
        const run = runs[choice.value];
        if (run) Object.assign(times, Pipeline.measured(run));
        for (const set of sliders) set();
        draw();
    }

    choice.addEventListener("change", replay);
    replay();
});
