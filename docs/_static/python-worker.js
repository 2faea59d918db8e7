/* SPDX-License-Identifier: BSD-3-Clause */
/* Python in a thread of the browser, so that a page can go on and can stop it.

   It has the module spead_tutorial.wire, which needs nothing but Python. The rest of the package is
   compiled, or sends, and says here that it cannot. */
import {loadPyodide} from "../pyodide/pyodide.mjs";

const PACKAGE = `
from spead_tutorial import wire

def __getattr__(name):
    raise ImportError(
        f"spead_tutorial.{name} is compiled or sends packets, which no browser can do: here there"
        " is spead_tutorial.wire alone"
    )
`;

const start = async (wire) => {
    const python = await loadPyodide();
    python.FS.mkdir("spead_tutorial");
    python.FS.writeFile("spead_tutorial/__init__.py", PACKAGE);
    python.FS.writeFile("spead_tutorial/wire.py", wire);
    return python;
};
let started = null;

onmessage = async ({data: {code, packets, wire}}) => {
    try {
        const python = await (started ??= start(wire));
        const say = {batched: (line) => postMessage({line})};
        python.setStdout(say);
        python.setStderr(say);
        const names = python.toPy({packets});
        python.runPython("packets = [bytes(one) for one in packets]", {globals: names});
        python.runPython(code, {globals: names});
        postMessage({done: true});
    } catch (error) {
        postMessage({done: true, line: error.message.trim().split("\n").at(-1)});
    }
};
