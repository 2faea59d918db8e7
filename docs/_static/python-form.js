/* SPDX-License-Identifier: BSD-3-Clause */
/* A few lines of Python about the packets of the dissector, run where the reader is. */
"use strict";

Play.fill("python", (place) => {
    const {make} = Play;
    const {base, size} = place.dataset, wire = place.querySelector("script").textContent;
    const code = make("textarea", {id: "python-code", rows: 5, spellcheck: false}, [
        "from spead_tutorial import wire",
        "",
        "for packet in packets:",
        "    print(wire.format_table(wire.dissect(packet)))",
    ].join("\n"));
    const run = make("button", {type: "button"}, `Run it in this browser (loads ${size})`);
    const stop = make("button", {type: "button", disabled: true}, "Stop");
    const said = make("p", {className: "said", role: "status"});
    const output = make("pre", {tabIndex: 0, role: "region", "aria-label": "What it printed"});
    let worker = null;

    function finish(words) {
        said.textContent = words;
        run.disabled = false;
        stop.disabled = true;
    }

    function end(words) {
        worker?.terminate();
        worker = null;
        finish(words);
    }

    function hear({data: {line, done}}) {
        if (line !== undefined) output.append(`${line}\n`);
        output.tabIndex = 0;  // the theme takes it from what is empty, and gives it back some time later
        if (done) finish("It has ended.");
    }

    run.addEventListener("click", () => {
        if (location.protocol === "file:") {
            said.textContent = "A browser runs this only from a server: python -m http.server, in the"
                + " folder of this site, makes one.";
            return;
        }
        if (worker === null) {
            worker = new Worker(`${base}_static/python-worker.js`, {type: "module"});
            worker.onmessage = hear;
            worker.onerror = () => end("Python could not be started.");
        }
        output.replaceChildren();
        said.textContent = "Running. The first time, Python has to be loaded.";
        run.disabled = true;
        stop.disabled = false;
        const packets = document.querySelector(".play.dissector").packets;
        worker.postMessage({code: code.value, packets, wire});
    });
    stop.addEventListener("click", () => end("It was stopped."));
    place.replaceChildren(make("label", {htmlFor: code.id}, "Python, with ", make("code", {}, "packets"),
        ": those above, each as bytes"), code, run, " ", stop, said, output);
});
