/* Figures that answer: over a picture lie its points, which say what they are; below it lines can be
   chosen, and a record of one's own laid over them, which never leaves the page. */
(() => {
    const GLYPHS = {python: "●○", c: "◆◇", cpp: "▼▽", spead2: "▲△", limit: "■□"};
    const LANES = {python: 0.3, c: 0.55, cpp: 0.8};  // of a row
    const SCRIPT = document.currentScript.src;
    const NEAR = 40, ROW = 28, HEIGHT = 300;  // pixels

    const several = (some, write) => some.map(write).join("");
    const distinct = (some, of) => [...new Set(some.map(of))];
    const number = (x) => x < 100 ? `${Number(x.toPrecision(3))}`
        : Math.round(x).toLocaleString("en").replaceAll(",", "\u2009");

    /* The nearest point says what it is. The Tab key gets to one, arrows to the others. */
    const reach = (box) => box.querySelector("[data-value]")?.setAttribute("tabindex", 0);
    const listen = (box, figure) => {
        const tip = figure.querySelector(".tip"), hide = () => { tip.hidden = true; };
        const points = () => [...box.querySelectorAll("[data-value]")];
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
            for (const one of points()) {
                const [x, y] = middle(one), away = Math.hypot(x - clientX, y - clientY);
                if (away < least) [near, least] = [one, away];
            }
            if (near) show(near); else hide();
        };
        const acts = {pointermove: look, click: look, pointerleave: hide, focusout: hide,
            keydown: ({key}) => key === "Escape" && hide(),
            focusin: ({target}) => target.dataset.value && show(target)};
        for (const event in acts) box.addEventListener(event, acts[event]);
        rove(box, "[data-value]");
    };

    /* What reads records comes when the first one does. */
    let reader;
    const load = () => reader ??= new Promise((done, fail) => {
        const src = SCRIPT.replace("figures.js", "records.js");
        const onerror = () => fail(new Error(`there is no ${src}`));
        const one = Object.assign(document.createElement("script"), {src, onload: done, onerror});
        document.head.append(one);
    });

    /* A chart of points and one's own: rows of a ladder, or lines over the size of heaps. */
    const chart = (width, all, mine) => {
        const ends = [...all, ...mine].flatMap(({values}) => values.slice(1));
        const least = Math.min(...ends), most = Math.max(...ends), ladder = all[0].row;
        const rows = distinct(all, ({row}) => row);
        const sizes = [...new Map(all.map(({at, size}) => [at, size]))].sort(([a], [b]) => a - b);
        const left = ladder ? Math.min(width / 2, 8 * Math.max(...rows.map((row) => row.length))) : 64;
        const bottom = ladder ? rows.length * ROW : HEIGHT;
        const across = (x, low, high) =>
            left + Math.log(x / low) / (Math.log(high / low) || 1) * (width - left - 32);
        const along = (rate) => ladder ? across(rate, least, most) : bottom - rate / most * (bottom - 16);
        const sized = (at) => across(at, sizes[0][0], sizes.at(-1)[0]);
        const place = ({row, role, at, values}, end) => ladder
            ? [along(values[end]), (rows.indexOf(row) + (LANES[role] ?? LANES.c)) * ROW]
            : [sized(at), along(values[end])];
        const word = (x, y, end, text) => `<text x="${x}" y="${y}" text-anchor="${end}">${text}</text>`;
        const rule = ([x1, y1], [x2, y2]) => `<line x1="${x1}" y1="${y1}" x2="${x2}" y2="${y2}"/>`;
        const vertical = (rate) => rule([along(rate), 0], [along(rate), bottom]) +
            word(along(rate), bottom + 16, "middle", `${rate / 1e3} GB/s`);
        const level = (rate) => rule([left, along(rate)], [width, along(rate)]) +
            word(left - 8, along(rate) + 4, "end", number(rate));
        const fitted = (row) => row.length * 7.5 > left ? `<tspan textLength="${left - 8}" ` +
            `lengthAdjust="spacingAndGlyphs">${row}</tspan>` : row;
        const few = (_, n) => n % Math.ceil(sizes.length * 64 / width) === 0;
        const steps = most / least < 30 ? [1, 2, 5] : [1];
        const decades = [1, 10, 100, 1e3, 1e4, 1e5].flatMap((x) => steps.map((n) => n * x));
        const scale = ladder
            ? several(decades.filter((x) => x >= least && x <= most), vertical) +
                several(rows, (row, n) => word(0, (n + 0.7) * ROW, "start", fitted(row)))
            : several([0, 1, 2, 3].map((n) => n * Number((most / 4).toPrecision(1))), level) +
                several(sizes.filter(few), ([at, size]) => word(sized(at), bottom + 16, "middle", size));
        const drawn = (some, own) => several(distinct(some, ({group}) => group), (name) => {
            const line = some.filter(({group}) => group === name), points = line.map((one) => place(one, 0));
            return `<g class="${line[0].role} ${own ? "own" : ""}">` +
                (ladder ? "" : `<polyline points="${points.join(" ")}"/>`) +
                several(line, (one, n) => rule(place(one, 1), place(one, 2)) +
                    `<text class="point" x="${points[n][0]}" y="${points[n][1]}" role="img" tabindex="-1"
                    aria-label="${one.words}" data-value="${one.values[0]}" data-key="${one.key}">` +
                    `${GLYPHS[one.role][own]}</text>`) + "</g>";
        });
        return [bottom + 24, `<g class="scale">${scale}</g>${drawn(all, 0)}${drawn(mine, 1)}`];
    };

    /* What one chooses and adds. What is beside both languages is in the picture twice. */
    const explore = (figure, details, marks) => {
        const all = [...new Map(marks.filter(({dataset}) => dataset.key).map((one) => {
            const {value, low, high, ...more} = one.dataset;
            return [more.key, {...more, values: [value, low, high].map(Number), words: one.ariaLabel}];
        })).values()];
        const svg = details.querySelector("svg"), status = details.querySelector("p");
        let own = new Map();
        const draw = () => {
            const off = [...details.querySelectorAll("[type=checkbox]:not(:checked)")].map((one) => one.value);
            const shown = all.filter(({group, size}) => !off.includes(group) && !off.includes(size));
            const mine = shown.filter(({key}) => own.has(key)).map((one) => {
                const [value, low, high, n] = own.get(one.key);
                const ends = [low, high].map(number).join(" to "), times = value / one.values[0];
                const words = `Yours: ${one.name}: ${number(value)} MB/s (${Records.spread(n)}${ends}), ` +
                    `${n} rounds, ×${times.toFixed(2)}`;
                return {...one, values: [value, low, high], words};
            });
            const width = details.clientWidth;
            const [height, inside] = shown.length ? chart(width, shown, mine) : [0, ""];
            svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
            svg.innerHTML = inside;
            reach(svg);
            return mine.length;
        };
        const take = async (file) => {
            try {
                await load();
                own = await Records.read(file);
                const n = draw();
                status.textContent = `${file.name}: ` +
                    (n ? `${n} points, hollow` : "a record, but none of its points is in this picture");
            } catch (error) {
                status.textContent = `${file.name} cannot be shown: ${error.message}`;
            }
        };
        const acts = {
            toggle: draw,
            change: ({target}) => target.files?.[0] ? take(target.files[0]) : draw(),
            dragover: (event) => event.preventDefault(),
            drop: (event) => {
                event.preventDefault();
                if (event.dataTransfer.files[0]) take(event.dataTransfer.files[0]);
            },
        };
        for (const event in acts) details.addEventListener(event, acts[event]);
        details.hidden = false;
        figure.append(details);  // below the caption
        listen(svg, figure);
    };

    document.addEventListener("DOMContentLoaded", () => {
        for (const tip of document.querySelectorAll("figure.picture .tip")) {
            const figure = tip.parentNode, plot = figure.querySelector(".plot");
            const details = figure.querySelector(".explore");
            reach(plot);
            // Its points scroll it.
            if (plot.querySelector(".spot")) plot.parentNode.removeAttribute("tabindex");
            listen(plot, figure);
            if (details) explore(figure, details, [...plot.querySelectorAll(".spot")]);
        }
    });
})();
