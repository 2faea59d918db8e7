/* SPDX-License-Identifier: BSD-3-Clause */
/* What the things to play with have in common: they are made where the page has a place for them. */
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

    /* Fill each place of a kind, as soon as there is a page. */
    fill(kind, make) {
        document.addEventListener("DOMContentLoaded", () =>
            document.querySelectorAll(`.play.${kind}`).forEach(make));
    },
};
