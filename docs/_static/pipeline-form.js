/* SPDX-License-Identifier: BSD-3-Clause */
/* The form for pipeline.js: a slider for each time, and bars for when each thread works. */
"use strict";

Play.fill("pipeline", (place) => {
    const {make} = Play;
    const SHOWN = 6;  // heaps
    const MOST = 10000;  // µs
    const PARTS = 1000, PLAYED = 8000;  // steps of the cursor, and ms from the first to the last
    const runs = JSON.parse(place.querySelector("script").textContent);
    const SLIDERS = {
        prepare: "Preparing a heap",
        send: "Sending it",
        wake: "Until the network thread has woken up",
        back: "Until the program goes on",
    };
    const times = {prepare: 100, send: 100, wake: 16, back: 49, depth: 2};
    const sliders = {};

    const written = (us) => (us < 1000 ? `${Math.round(us)} µs` : `${(us / 1000).toFixed(2)} ms`);

    function slider(name, words, more, read, write) {
        const control = make("input", {type: "range", id: `pipeline-${name}`, ...more});
        const output = make("output", {htmlFor: control.id});
        const label = make("label", {htmlFor: control.id}, `${words}: `, output);
        const look = () => {
            const said = write(times[name]);
            output.textContent = said;
            control.setAttribute("aria-valuetext", said);
        };
        control.addEventListener("input", () => {
            times[name] = read(Number(control.value));
            look();
            draw();
        });
        sliders[name] = (value) => {
            control.value = value;
            look();
        };
        return make("div", {className: "field"}, label, control);
    }

    /* Short times need as much room as long ones: a slider's place is the root of its time. */
    const fields = Object.entries(SLIDERS).map(([name, words]) => slider(
        name, words, {min: 0, max: Math.sqrt(MOST), step: 0.5}, (root) => root * root, written));
    fields.push(slider("depth", "Heaps in flight", {min: 1, max: 4, step: 1}, (n) => n,
        (n) => (n === 1 ? "1, in turns" : String(n))));

    const choice = make("select", {id: "pipeline-run"}, new Option("none", ""),
        ...runs.map((run, i) => new Option(run.name, i)));
    const said = make("p", {className: "said", role: "status"});
    const blocks = make("div", {className: "blocks"});

    function bars(intervals, kind, scale) {
        return intervals.map(([begin, finish], heap) => {
            const one = make("span", {className: `bar ${kind}`});
            one.style.left = `${100 * begin / scale}%`;
            one.style.width = `${100 * (finish - begin) / scale}%`;
            if ((finish - begin) / scale > 0.03) one.textContent = heap;
            return one;
        });
    }

    function block(title, rows, scale) {
        const line = (words, name, ...kinds) => make("div", {className: "line"},
            make("span", {className: "who"}, words), make("div", {className: "track"}, ...kinds.flat()));
        const prepared = rows.map((row) => [row.prepare, row.queued]);
        const one = make("div", {className: "block", role: "img"},
            make("p", {}, title),
            line("program", "prepare", bars(prepared, "preparing", scale)),
            line("network thread", "send", bars(Pipeline.sent(rows), "sending", scale)));
        one.setAttribute("aria-label", title);
        return one;
    }

    /* A cursor that moves along all blocks; what the threads do where it is stands below, in words. */
    let moment = 0, before = null, shown = {drawn: [], scale: 1};
    const cursor = make("input", {type: "range", id: "pipeline-moment", min: 0, max: PARTS,
        "aria-describedby": "pipeline-now"});
    const button = make("button", {type: "button"}, "Play");
    const now = make("p", {className: "now", id: "pipeline-now"});

    function move() {
        const time = moment / PARTS * shown.scale;
        const does = (heap, work, nothing) => (heap < 0 ? nothing : `${work} heap ${heap}`);
        cursor.value = moment;
        cursor.setAttribute("aria-valuetext", written(time));
        blocks.style.setProperty("--moment", moment / PARTS);
        now.textContent = `After ${written(time)}. ` + shown.drawn.map(([title, rows]) => {
            const {preparing, sending} = Pipeline.at(rows, time);
            return `${title}: program ${does(preparing, "prepares", "waits")}, network thread`
                + ` ${does(sending, "sends", "has nothing to send")}.`;
        }).join(" ");
    }

    function pause() {
        before = null;
        button.textContent = "Play";
    }

    function play() {
        if (moment >= PARTS) moment = 0;
        before = performance.now();
        button.textContent = "Pause";
        requestAnimationFrame(go);
    }

    function go(time) {
        if (before === null) return;
        moment = Math.min(PARTS, moment + Math.max(0, time - before) / PLAYED * PARTS);
        before = time;
        move();
        if (moment < PARTS) requestAnimationFrame(go); else pause();
    }

    cursor.addEventListener("input", () => {
        pause();
        moment = Number(cursor.value);
        move();
    });
    button.addEventListener("click", () => (before === null ? play() : pause()));
    /* Who wants nothing to move by itself has the cursor alone. */
    const still = matchMedia("(prefers-reduced-motion: reduce)");
    const heed = () => {
        button.hidden = still.matches;
        pause();
    };
    still.addEventListener("change", heed);
    heed();

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
        shown = {drawn, scale};
        move();
        blocks.replaceChildren(...drawn.map(([title, rows]) => block(title, rows, scale)));
        const factor = quick > 0 ? (slow / quick).toFixed(2) : "1.00";
        said.textContent = `In turns, a heap takes ${written(slow)}; with ${depth} in flight,`
            + ` ${written(quick)}: ${factor} times as fast.` + (run ? compare(run) : "");
    }

    function replay() {
        const run = runs[choice.value];
        if (run) Object.assign(times, Pipeline.measured(run));
        for (const name of Object.keys(SLIDERS)) sliders[name](Math.sqrt(times[name]));
        sliders.depth(times.depth);
        draw();
    }

    choice.addEventListener("change", replay);
    const replayed = make("div", {className: "field"},
        make("label", {htmlFor: choice.id}, "Beside it, a recorded run"), choice);
    const form = make("form", {}, make("div", {className: "sliders"}, ...fields, replayed));
    form.addEventListener("submit", (event) => event.preventDefault());
    const moments = make("div", {className: "field replay"}, button,
        make("label", {htmlFor: cursor.id}, "Moment"), cursor);
    place.replaceChildren(form, said, blocks, moments, now);
    replay();
});
