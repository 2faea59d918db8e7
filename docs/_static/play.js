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

    /* Fill each place of a kind with its form, as soon as there is a page, and bring it to life. */
    fill(kind, make) {
        document.addEventListener("DOMContentLoaded", () => {
            for (const place of document.querySelectorAll(`.play.${kind}`)) {
                place.append(place.querySelector("template").content);
                make(place);
            }
        });
    },
};
