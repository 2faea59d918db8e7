/* SPDX-License-Identifier: BSD-3-Clause */
/* Tables of machines are sorted by the column whose head is pressed: numbers from the largest on,
   words from A on, and the other way round when it is pressed again. Without this they stand in the
   order of the records' names. */
"use strict";

document.addEventListener("DOMContentLoaded", () => {
    const words = new Intl.Collator("en", {numeric: true});
    const number = (cell) => Number(cell.innerText.replaceAll(/\s|MB\/s|%/g, "") || NaN);
    const isNumber = (cell) => !isNaN(number(cell));
    const compare = (one, other) => isNumber(one) && isNumber(other)
        ? number(one) - number(other)
        : isNumber(other) - isNumber(one) || words.compare(one.innerText, other.innerText);

    const sort = (body, column, down) => {
        const cell = (row) => row.cells[column];
        const isKnown = (row) => cell(row).innerText !== "-";
        // What was not measured is last, whichever way.
        body.append(...[...body.rows].sort((one, other) => isKnown(other) - isKnown(one)
            || compare(cell(one), cell(other)) * (down ? -1 : 1)));
    };

    for (const table of document.querySelectorAll("table.machines")) {
        const heads = [...table.tHead.rows].at(-1).cells;
        [...heads].forEach((head, column) => {
            const press = () => {
                const before = head.ariaSort;
                const cells = [...table.tBodies[0].rows].map((row) => row.cells[column]);
                const down = before ? before === "ascending" : cells.some(isNumber);
                for (const one of heads) one.removeAttribute("aria-sort");
                head.setAttribute("aria-sort", down ? "descending" : "ascending");
                sort(table.tBodies[0], column, down);
            };
            head.replaceChildren(Play.make("button", {type: "button", onclick: press}, head.textContent));
        });
    }
});
