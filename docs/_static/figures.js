/* Figures that answer: over a picture lie its points, which say what they are. */
(() => {
    const NEAR = 40;  // pixels

    /* The nearest point says what it is. The Tab key gets to one, arrows to the others. */
    const listen = (box, tip) => {
        const figure = tip.parentNode, hide = () => { tip.hidden = true; };
        const points = [...box.querySelectorAll(".spot")];
        const middle = (one) => {
            const {left, top, width, height} = one.getBoundingClientRect();
            return [left + width / 2, top + height / 2];
        };
        const show = (one) => {
            const [x, y] = middle(one), frame = figure.getBoundingClientRect();
            tip.textContent = one.getAttribute("aria-label");
            tip.hidden = false;
            const most = frame.width - tip.offsetWidth, left = x - frame.left - tip.offsetWidth / 2;
            tip.style.left = `${Math.max(0, Math.min(left, most))}px`;
            tip.style.top = `${y - frame.top - tip.offsetHeight - 12}px`;
        };
        const look = ({clientX, clientY}) => {
            let near, least = NEAR;
            for (const one of points) {
                const [x, y] = middle(one), away = Math.hypot(x - clientX, y - clientY);
                if (away < least) [near, least] = [one, away];
            }
            if (near) show(near); else hide();
        };
        const acts = {pointermove: look, click: look, pointerleave: hide, focusout: hide,
            keydown: ({key}) => key === "Escape" && hide(),
            focusin: ({target}) => points.includes(target) && show(target)};
        for (const event in acts) box.addEventListener(event, acts[event]);
        rove(box, ".spot");
        points[0].tabIndex = 0;
        box.parentNode.removeAttribute("tabindex");  // its points scroll it
    };

    document.addEventListener("DOMContentLoaded", () => {
        for (const tip of document.querySelectorAll("figure.picture .tip"))
            listen(tip.parentNode.querySelector(".plot"), tip);
    });
})();
