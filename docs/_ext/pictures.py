# SPDX-License-Identifier: BSD-3-Clause
"""Pictures in the page's colours, with what they show in words, and the record behind them.

    {picture} NAME          what `bench.figures` draws of a committed record, in all its forms; the
                            directive's content is what to see in it
    {gallery}               all of them, or those that are named, small: each with its title, and a
                            link to where it is large
    {diagram} NAME          ``diagrams/NAME.svg``, dark on white paper as a file: in the page, it is
                            without the paper and in the page's colours
    {thumbnail} NAME        a part of a picture or diagram, without words, to be told from others

On a picture are its points, HTML that ``figures.js`` brings to life: each lies where it is in the
picture, and says what it is.
"""

import concurrent.futures
import functools
import html
import json
import re
from pathlib import Path
from typing import Any

from docutils import nodes
from listings import TEMPLATES
from measured import is_reference, machine_facts, named, recording
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util.docutils import SphinxDirective

from bench import figures
from bench.figures import FIGURES, PICTURES, RESULTS, SPECIFIED
from spead_tutorial.measure import stats
from spead_tutorial.measure.records import read
from spead_tutorial.results import plots, units
from spead_tutorial.results.plots.picture import TIMES, where_on_x

DIAGRAMS = FIGURES.parent / "diagrams"
#: What a diagram's file has, and what stands for it in a page: every viewer knows plain colours.
PAPER = '<rect width="100%" height="100%" fill="#fff"/>'
IN_PAGES = {
    PAPER: "",
    "#0a7d91": "var(--pst-color-primary)",
    "#d1d5da": "var(--pst-color-border)",
    "#f3f4f5": "var(--pst-color-surface)",
    "#fff": "var(--pst-color-background)",
}
#: What the style sheet calls how far a point is from the left and from the top.
_PLACES = ("x", "y")
#: In the folder of what is made for the site, and not kept.
_DRAWN = "notebooks/pictures"
_PICTURES = {Path(picture.name).stem: picture for picture in PICTURES}


# ---- The points of a picture ----


def overlay(path: Path) -> str:
    """Return what is on a picture, its points if it has any, and the end of its frame."""
    if not path.exists():
        return "</div></div>"
    data = json.loads(path.read_text())
    points = [_point(data["lines"][index], *values) for index, *values in data["points"]]
    return TEMPLATES.get_template("points.html").render(points=points)


def _point(
    line: dict[str, Any], at: float, value: float, low: float, high: float, n: int, *places: float
) -> tuple[str, dict[str, float]]:
    """Return what a point says, and where it is in the picture."""
    is_gain = line["unit"] == TIMES
    middle = units.times(value) if is_gain else f"{units.number(value)} {line['unit']}"
    ends = " to ".join(f"{x:.2f}" if is_gain else units.number(x) for x in (low, high))
    spread = "range " if n < stats.FEWEST else ""
    where = where_on_x(line["over"], at)
    said = f"{line['name']}, {where}: {middle} ({spread}{ends}), {n} rounds"
    return said, dict(zip(_PLACES, places, strict=False))


# ---- Pictures ----


class Picture(SphinxDirective):
    """A picture, light or dark as the page is, with its words and the record behind it."""

    required_arguments = 1
    has_content = True

    def run(self) -> list[nodes.Node]:
        name = self.arguments[0]
        if name not in _PICTURES:
            raise self.error(f"there is no picture {name}: there are {', '.join(_PICTURES)}")
        up = "../" * (self.env.docname.count("/") + 1)
        sweep = _PICTURES[name].sweep
        record, machine = f"{sweep}.jsonl", "[this machine](#the-reference-machine)"
        if not is_reference(sweep):
            machine = f"another machine than most ({named(machine_facts(recording(sweep)))})"
        source = (
            f"Drawn from {{download}}`{record} <{up}bench/results/{record}>`,"
            f" [measured](/explanation/measurements.md) on {machine}."
        )
        words = f"{' '.join(self.content)} {source}".strip()
        figure = shown(self, drawn(self.env) / f"{name}.svg", words)
        return [_raw(f'<span id="picture-{name}"></span>'), *figure]


class Gallery(SphinxDirective):
    """Small pictures that lead to where they are large."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        found: list[nodes.Node] = [_raw('<div class="gallery">')]
        for name in self.content or _PICTURES:
            page = _pages(self.env.srcdir).get(name)
            if page is None:
                raise self.error(f"no page shows {name}")
            self.env.note_dependency(f"{page}.md")
            title, _, of = described(drawn(self.env) / f"{name}.svg")[0].partition(". ")
            uri = self.env.app.builder.get_relative_uri(self.env.docname, page)
            link = nodes.reference(refuri=f"{uri}#picture-{name}", internal=True)
            link += _small(name, of or title)
            link += nodes.Text(title)
            found.append(nodes.paragraph("", "", link))
        return [*found, _raw("</div>")]


@functools.cache
def _pages(folder: Path) -> dict[str, str]:
    """Return on which page a picture is large: of several, the first."""
    found: dict[str, str] = {}
    for path in sorted(folder.rglob("*.md")):
        page = path.relative_to(folder).with_suffix("").as_posix()
        for name in re.findall(r"^```\{picture\} (\S+)", path.read_text(), re.M):
            found.setdefault(name, page)
    return found


def drawn(env: BuildEnvironment) -> Path:
    """Return the folder with what was drawn for the site."""
    return Path(env.srcdir, _DRAWN)


def _draw_all(app: Sphinx) -> None:
    """Draw what has changed since it was drawn: the record, or what draws it."""
    folder = drawn(app.env)
    folder.mkdir(parents=True, exist_ok=True)
    sources = [SPECIFIED, Path(figures.__file__), *Path(plots.__file__).parent.glob("*.py")]
    newest = max(path.stat().st_mtime for path in sources)
    stale = []
    for name, picture in _PICTURES.items():
        last = folder / f"{name}-dark.svg"
        since = max(newest, (RESULTS / f"{picture.sweep}.jsonl").stat().st_mtime)
        if not last.exists() or last.stat().st_mtime < since:
            stale.append(name)
    with concurrent.futures.ProcessPoolExecutor(app.parallel or 1) as pool:
        list(pool.map(_draw, stale, [folder] * len(stale)))


def _draw(name: str, folder: Path) -> None:
    picture = _PICTURES[name]
    recording = read(RESULTS / f"{picture.sweep}.jsonl")
    plots.save_for_site(folder / f"{name}.svg", picture.draw(recording))


def shown(directive: SphinxDirective, light: Path, caption: str) -> list[nodes.Node]:
    """Return what a page has of a picture that `plots.save_for_site` wrote for it."""
    name, env = light.stem, directive.env
    folder = light.parent.relative_to(env.srcdir)
    env.note_dependency(str(light))
    title, _ = described(light)
    figure = nodes.figure(classes=["picture"])
    # On a narrow screen it scrolls within this, also for those who have keys alone.
    points = light.with_suffix(".json")
    frame = f'<div class="frame" tabindex="0" role="group" aria-label="{html.escape(title)}">'
    figure += _raw(f'{frame}<div class="plot">')
    for end, theme in (("", "only-light"), ("-dark", "only-dark")):
        figure += nodes.image(uri=f"/{folder}/{name}{end}.svg", alt=title, classes=[theme])
    env.note_dependency(str(points))
    figure += _raw(overlay(points))
    return captioned(directive, figure, caption, light)


class Diagram(SphinxDirective):
    """A drawing that is a part of the page, with its description in words."""

    required_arguments = 1
    has_content = True

    def run(self) -> list[nodes.Node]:
        path = DIAGRAMS / f"{self.arguments[0]}.svg"
        figure = nodes.figure("", _raw(drawing(self, path)), classes=["diagram"])
        return captioned(self, figure, " ".join(self.content), path)


class Thumbnail(SphinxDirective):
    """A picture, light or dark as the page is, or a drawing: the style sheet shows a part of it."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        name = self.arguments[0]
        box = nodes.container(classes=["thumbnail"])
        if name in _PICTURES:
            box += _small(name, described(drawn(self.env) / f"{name}.svg")[0])
        else:
            svg = drawing(self, DIAGRAMS / f"{name}.svg")
            box += _raw(svg.replace("<svg ", '<svg preserveAspectRatio="xMidYMin slice" ', 1))
        return [box]


def _small(name: str, alt: str) -> list[nodes.Node]:
    """Return a picture in the page's colours, without its points."""
    return [
        nodes.image(uri=f"/{_DRAWN}/{name}{end}.svg", alt=alt, classes=[theme], loading="lazy")
        for end, theme in (("", "only-light"), ("-dark", "only-dark"))
    ]


def drawing(directive: SphinxDirective, path: Path) -> str:
    """Return a drawing as a page can hold it."""
    if not path.is_file():
        raise directive.error(f"there is no diagram {path.name} in {DIAGRAMS.name}")
    directive.env.note_dependency(str(path))
    svg = path.read_text()
    for plain, in_page in IN_PAGES.items():
        svg = svg.replace(plain, in_page)
    return svg[svg.index("<svg") :]


def _raw(text: str) -> nodes.raw:
    return nodes.raw("", text, format="html")


def captioned(
    directive: SphinxDirective, figure: nodes.figure, caption: str, path: Path
) -> list[nodes.Node]:
    """Return a figure with its caption, and below it what it shows in words."""
    children, _ = directive.parse_inline(caption)
    figure += nodes.caption("", "", *children)
    title, words = map(html.escape, described(path))
    summary = f"<summary>The picture in words<span> ({title})</span></summary>"
    return [figure, _raw(f'<details class="in-words">{summary}<p>{words}</p></details>')]


def described(path: Path) -> tuple[str, str]:
    """Return a picture's title and its description, which it has in itself for screen readers."""
    text = path.read_text()
    matches = [re.search(rf"<{tag}[^>]*>([^<]+)</{tag}>", text) for tag in ("title", "desc")]
    title, words = (html.unescape(match[1]).strip() if match else "" for match in matches)
    if not title or not words:
        raise ValueError(f"{path.name} has no title or no description in it")
    return title, words


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("builder-inited", _draw_all)
    app.add_directive("diagram", Diagram)
    app.add_directive("gallery", Gallery)
    app.add_directive("picture", Picture)
    app.add_directive("thumbnail", Thumbnail)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
