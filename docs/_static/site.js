/* What the theme leaves undone. */

/* A browser fetches no files for the words around what a search found. */
if (location.protocol === "file:") DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false;

/* Of several things in a box the Tab key gets to one, arrows to the others. */
const rove = (box, selector) => box.addEventListener("keydown", (event) => {
    const step = {ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1}[event.key];
    const all = [...box.querySelectorAll(selector)], at = all.indexOf(event.target);
    if (!step || at < 0) return;
    event.preventDefault();
    const next = all.at((at + step) % all.length);
    event.target.setAttribute("tabindex", -1);
    next.setAttribute("tabindex", 0);
    next.focus();
});

/* Paper is white. */
const root = document.documentElement;
let theme;
addEventListener("beforeprint", () => {
    theme = root.dataset.theme;
    root.dataset.theme = "light";
});
addEventListener("afterprint", () => { root.dataset.theme = theme; });

document.addEventListener("DOMContentLoaded", () => {
    /* A page whose title has a word that is looked for comes before those where only a part has. */
    if (window.Scorer) {
        const words = (text) => text.toLowerCase().split(/\W+/);
        const wanted = words(new URLSearchParams(location.search).get("q") ?? "");
        const isOfPage = (title, kind) => ["text", "title"].includes(kind) && !title.includes(" > ");
        Scorer.score = ([, title, , , score, , kind]) => score
            + 20 * (isOfPage(title, kind) && words(title).some((one) => one && wanted.includes(one)));
    }

    /* Long names go on after their parts, where a line has no room for them, and not within a word.
       Endings of files and numbers stay whole. */
    const parts = /_|::|\/|\.(?!\d|\w{1,3}$)/g;
    const named = ":is(dt.sig, code:not(.whole-words)) .pre, .field-list strong, .indextable a";
    for (const name of document.querySelectorAll(named))
        for (const text of [...name.childNodes].filter((node) => node.nodeType === Node.TEXT_NODE)) {
            const [first, ...others] = text.data.replaceAll(parts, "$&\0").split("\0");
            if (others.length)
                text.replaceWith(first, ...others.flatMap((one) => [document.createElement("wbr"), one]));
        }

    /* A table of measured numbers takes one Tab. */
    for (const table of document.querySelectorAll("article table:has(button.measured)")) {
        const [, ...others] = table.querySelectorAll("button.measured");
        for (const one of others) one.setAttribute("tabindex", -1);
        rove(table, "button.measured");
    }

    /* The toggles of the navigation are an arrow without words. */
    for (const summary of document.querySelectorAll("nav summary")) {
        const link = summary.closest("li")?.querySelector("a");
        if (link && !summary.textContent.trim())
            summary.setAttribute("aria-label", `Pages below: ${link.textContent.trim()}`);
    }

    /* Code that is too wide can be scrolled by keyboard: the theme sees to that, but only where the
       window changed, and not where a tab or a box was opened. */
    const look = () => window.dispatchEvent(new Event("resize"));
    document.addEventListener("change", look);
    document.addEventListener("toggle", look, true);

    /* What goes on beyond the edge of its box fades out there: phones have no scroll bars to tell. */
    const boxes = "pre, .cell_output > .output, .pst-scrollable-table-container, figure.picture .frame";
    const fade = (box) => box.classList.toggle(
        "goes-on", box.scrollLeft + box.clientWidth < box.scrollWidth - 1);
    window.addEventListener("resize", () => document.querySelectorAll(boxes).forEach(fade));
    document.addEventListener("scroll", (event) => {
        if (event.target.matches?.(boxes)) fade(event.target);
    }, {capture: true, passive: true});
    look();
});
