/* What the theme leaves undone. */

/* A browser fetches no files for the words around what a search found. */
if (location.protocol === "file:") DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false;

document.addEventListener("DOMContentLoaded", () => {
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
    look();
});
