/* SPDX-License-Identifier: BSD-3-Clause */
/* What the things to play with have in common: their forms are templates until there are scripts. */
"use strict";

const Play = {
    /* An element with properties (attributes, where there is a hyphen) and what is in it. */
    make(tag, properties = {}, ...children) {
        const one = document.createElement(tag);
        for (const [name, value] of Object.entries(properties))
            if (name.includes("-") || name === "role") one.setAttribute(name, value);
            else one[name] = value;
        one.append(...children);
        return one;
    },

    /* A slider: what its place means is said beside it, and told when it moves. Returns what says it. */
    slider(control, read, written, moved) {
        const output = control.parentNode.querySelector("output");
        const say = (value) => {
            output.textContent = written(value);
            control.setAttribute("aria-valuetext", output.textContent);
        };
        control.addEventListener("input", () => {
            const value = read(Number(control.value));
            say(value);
            moved(value);
        });
        return say;
    },

    /* Sliders whose places are values. `changed` is told them by name, at once and when one moves.
       Returns what tells it again. */
    stops(place, written, changed) {
        const values = {}, redraw = () => changed(values);
        for (const [name, words] of Object.entries(written)) {
            const control = place.querySelector(`input[id$="-${name}"]`);
            const all = control.dataset.stops.split(" ").map(Number);
            values[name] = all[control.value];
            Play.slider(control, (at) => all[at], words, (value) => {
                values[name] = value;
                redraw();
            })(values[name]);
        }
        redraw();
        return redraw;
    },

    /* Numbers in words: how many, and bytes with the unit in which they are whole. */
    count: (n, of = "") => n.toLocaleString("en", {useGrouping: "min2"}).replaceAll(",", "\u00a0")
        + (of && ` ${of}${n === 1 ? "" : "s"}`),
    bytes(n) {
        const [size, unit] = [[1 << 20, "MiB"], [1024, "KiB"], [1, "bytes"]].find(([one]) => n % one === 0);
        return `${Play.count(n / size)}\u00a0${unit}`;
    },

    /* A picture under its title: lines, each of [words, bars], and bars of [begin, length, kind, words],
       in parts of the line. */
    block(title, lines) {
        const bar = ([begin, length, kind, words]) => {
            const one = Play.make("span", {className: `bar ${kind}`});
            one.style.left = `${100 * begin}%`;
            one.style.width = `${100 * length}%`;
            if (length > 0.03) one.textContent = words;
            return one;
        };
        return Play.make("div", {className: "block", role: "img", "aria-label": title},
            Play.make("p", {}, title),
            ...lines.map(([words, bars]) => Play.make("div", {className: "line"},
                Play.make("span", {className: "who"}, words),
                Play.make("div", {className: "track"}, ...bars.map(bar)))));
    },

    /* Fill each place of a kind with its form, as soon as there is a page, and bring it to life:
       `make` is told the place, and how to find what is in it. */
    fill(kind, make) {
        document.addEventListener("DOMContentLoaded", () => {
            for (const place of document.querySelectorAll(`.play.${kind}`)) {
                place.append(place.querySelector("template").content);
                place.querySelector("form").addEventListener("submit", (event) => event.preventDefault());
                make(place, (selector) => place.querySelector(selector));
            }
        });
    },
};
