/* SPDX-License-Identifier: BSD-3-Clause */
/* A few lines of Python about the packets of the dissector, run where the reader is. */
"use strict";

Play.fill("python", (place) => {
    const base = place.dataset.base, wire = place.querySelector("script").textContent;
    const [code, said, output] = ["textarea", ".said", "pre"].map((one) => place.querySelector(one));
    const [run, stop] = place.querySelectorAll("button");
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
});
