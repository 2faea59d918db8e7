# SPDX-License-Identifier: BSD-3-Clause
"""Pictures of recordings, all in one style, light and dark.

The same recording gives the same bytes. Matplotlib comes with the extra ``[lab]``: without
it, drawing raises `MissingError`.
"""

import dataclasses
import html
import io
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spead_tutorial.programs import LANGUAGES, find_chapter
from spead_tutorial.records import Recording, Sample
from spead_tutorial.stats import FEWEST, Estimate, median

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["DARK", "LIGHT", "MissingError", "Theme", "caption", "ladder", "render", "save"]

_NAMES = {"python": "Python", "c": "C"}
_HATCHES = {"python": "", "c": "////"}
_MARKERS = {"python": "o", "c": "D"}
_BAR = 0.36


class MissingError(RuntimeError):
    """What draws the pictures is not installed."""


@dataclasses.dataclass(frozen=True, slots=True)
class Theme:
    """Colours of a picture; the languages' differ in lightness too.

    Parameters
    ----------
    name : str
        ``"light"`` or ``"dark"``.
    background, text, faint, grid : str
        Colours of what is not data.
    languages : dict
        A colour for each language.
    """

    name: str
    background: str
    text: str
    faint: str
    grid: str
    languages: dict[str, str]


LIGHT = Theme(
    "light", "#ffffff", "#1a1a1a", "#5c5c5c", "#dcdcdc", {"python": "#0067a5", "c": "#e39b1f"}
)
DARK = Theme(
    "dark", "#14181d", "#eceff2", "#a8b0b8", "#343b43", {"python": "#62b6ee", "c": "#f0b64d"}
)


def save(
    path: Path, draw: "Callable[[Recording, Theme], tuple[Figure, str, str]]", recording: Recording
) -> list[Path]:
    """Draw a picture twice: light to `path`, and dark beside it.

    Parameters
    ----------
    path : path
        The light picture, an SVG; the dark one has ``-dark`` before its suffix.
    draw : function
        Such as `ladder`.
    recording : Recording
        What to draw.

    Returns
    -------
    list of path
        Both files.
    """
    written = []
    for theme, end in ((LIGHT, ""), (DARK, "-dark")):
        target = path.with_name(f"{path.stem}{end}{path.suffix}")
        target.write_bytes(render(draw, recording, theme))
        written.append(target)
    return written


def render(
    draw: "Callable[[Recording, Theme], tuple[Figure, str, str]]",
    recording: Recording,
    theme: Theme,
) -> bytes:
    """Draw a picture and return its SVG; the same recording gives the same bytes."""
    matplotlib = _matplotlib()
    style: dict[str, Any] = {
        "font.family": "DejaVu Sans",
        "font.size": 9,
        "svg.hashsalt": "spead_tutorial",
        "svg.fonttype": "none",
        "hatch.linewidth": 0.7,
        "text.color": theme.text,
        "axes.labelcolor": theme.text,
        "axes.edgecolor": theme.faint,
        "axes.facecolor": theme.background,
        "figure.facecolor": theme.background,
        "savefig.facecolor": theme.background,
        "xtick.color": theme.faint,
        "xtick.labelcolor": theme.text,
        "ytick.color": theme.faint,
        "ytick.labelcolor": theme.text,
        "grid.color": theme.grid,
    }
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(style)
        figure, title, description = draw(recording, theme)
        out = io.StringIO()
        # The stream's newlines and no date: nothing that differs from one time to the next.
        figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None})
    return _described(out.getvalue(), title, description).encode()


def _described(svg: str, title: str, description: str) -> str:
    """Give an SVG the title and description that screen readers read, and fonts to fall back on."""
    svg = svg.replace("'DejaVu Sans'", "'DejaVu Sans', Verdana, sans-serif")
    start = svg.index("<svg ")
    end = svg.index(">", start)
    labels = ' role="img" aria-labelledby="picture-title picture-description"'
    texts = (
        f'\n <title id="picture-title">{html.escape(title)}</title>'
        f'\n <desc id="picture-description">{html.escape(description)}</desc>'
    )
    return svg[:end] + labels + ">" + texts + svg[end + 1 :]


def _matplotlib() -> Any:
    try:
        import matplotlib
        import matplotlib.figure
    except ImportError:
        raise MissingError("drawing needs matplotlib: pip install 'spead-tutorial[lab]'") from None
    return matplotlib


def caption(recording: Recording) -> str:
    """Say where the numbers of a recording come from, for the foot of a picture."""
    header = recording.header
    machine, lab = header.machine, header.lab
    virtual = machine.get("virtualisation")
    parts = [
        f"{machine.get('cpu') or 'unknown CPU'}, {machine.get('usable_cores')} cores"
        + (f" ({virtual})" if virtual not in (None, "none") else ""),
        f"Linux {machine.get('kernel')}",
        f"sent to: {lab.get('kind')}, MTU {lab.get('mtu')}{_exceptions(recording)}",
        f"governor {machine.get('governor') or 'unknown'}",
    ]
    versions = header.versions
    rounds = header.settings.get("rounds", 0)
    spread = "95 % interval" if rounds >= FEWEST else "their range"
    more = [
        f"median of {rounds} rounds, dots: samples, line: {spread}",
        f"Python {versions.get('python')}, NumPy {versions.get('numpy')}",
        versions.get("compiler") or "unknown compiler",
        *([f"revision {header.revision}"] if header.revision else []),
        header.time[:10],
    ]
    return " · ".join(parts) + "\n" + " · ".join(more)


def _exceptions(recording: Recording) -> str:
    """Name the chapters that sent to loopback though there was a lab."""
    numbers = {one.chapter for one in recording.samples if one.kind == "loopback"}
    return "".join(f" (chapter {number}: loopback)" for number in sorted(numbers))


# ---------------------------------------------------------------------------------------
# The ladder


@dataclasses.dataclass(frozen=True, slots=True)
class _Bar:
    """A chapter's rates in one language, in MB/s; those of a failed one are None."""

    chapter: int
    random: bool
    language: str
    rates: tuple[float, ...] | None

    @property
    def estimate(self) -> Estimate | None:
        return median(self.rates) if self.rates else None


def ladder(recording: Recording, theme: Theme) -> "tuple[Figure, str, str]":
    """Draw the rate of every chapter in both languages, a panel for each size of heaps.

    Parameters
    ----------
    recording : Recording
        A tour's.
    theme : Theme
        Colours.

    Returns
    -------
    tuple
        The figure, its title, and its description in words and numbers.
    """
    matplotlib = _matplotlib()
    panels = _panels(recording)
    counts = [len(_steps(bars)) for _, bars in panels]
    height = 0.56 * sum(counts) + 0.5 * len(panels) + 1.5
    figure = matplotlib.figure.Figure(figsize=(9.6, height))
    axes = figure.subplots(
        len(panels), 1, squeeze=False, sharex=True, gridspec_kw={"height_ratios": counts}
    )[:, 0]
    figure.subplots_adjust(
        left=0.272, right=0.975, top=1 - 0.92 / height, bottom=0.98 / height, hspace=0.16
    )
    most = max((max(bar.rates) for _, bars in panels for bar in bars if bar.rates), default=1.0)
    for axis, (heap_size, bars) in zip(axes, panels, strict=True):
        _draw_panel(axis, bars, theme, most)
        axis.set_title(f"Heaps of {_bytes(heap_size)}", loc="left", fontsize=10)
    axes[0].set_xlim(0, most * 1.13)
    axes[-1].set_xlabel("payload sent in MB/s (10⁶ bytes a second)")
    _second_axis(axes[0], theme)
    title = "What each chapter gained"
    figure.text(0.014, 1 - 0.3 / height, title, fontsize=13, weight="bold")
    _legend(figure, theme, 1 - 0.3 / height)
    figure.text(0.014, 0.1 / height, caption(recording), fontsize=6.6, color=theme.faint)
    return figure, title, _ladder_in_words(recording, panels)


def _panels(recording: Recording) -> list[tuple[int, list[_Bar]]]:
    """Sort a recording's samples into bars, and those into panels, largest heaps first."""
    groups: dict[tuple[int, int, bool, str], list[Sample]] = {}
    for one in recording.samples:
        key = (one.heap_size, one.chapter, one.random, one.language)
        groups.setdefault(key, []).append(one)
    panels: dict[int, list[_Bar]] = {}
    for (heap_size, chapter, with_random, language), samples in sorted(groups.items()):
        rates = [one.rate for one in samples if not one.warm_up]
        whole = all(one.failure is None for one in samples)
        values = tuple(rate / 1e6 for rate in rates if rate is not None) if whole else None
        panels.setdefault(heap_size, []).append(_Bar(chapter, with_random, language, values))
    return sorted(panels.items(), reverse=True)


def _steps(bars: Sequence[_Bar]) -> list[tuple[int, bool]]:
    """Return the steps of the ladder: chapters, the random one before the fill."""
    return sorted({(bar.chapter, bar.random) for bar in bars}, key=lambda s: (s[0], not s[1]))


def _draw_panel(axis: "Axes", bars: Sequence[_Bar], theme: Theme, most: float) -> None:
    steps = _steps(bars)
    for bar in bars:
        lane = LANGUAGES.index(bar.language) - 0.5
        y = steps.index((bar.chapter, bar.random)) + lane * (_BAR + 0.04)
        _draw_bar(axis, bar, y, theme, most)
    axis.set_yticks([])
    for y, step in enumerate(steps):
        _label(axis, y, _step_title(*step), _step_change(*step), theme)
    axis.set_ylim(len(steps) - 0.5, -0.5)
    axis.xaxis.set_major_formatter(lambda x, _: _thousands(x))
    axis.grid(axis="x", linewidth=0.6)
    axis.set_axisbelow(True)
    for side in ("top", "right"):
        axis.spines[side].set_visible(False)


def _draw_bar(axis: "Axes", bar: _Bar, y: float, theme: Theme, most: float) -> None:
    """Draw a bar with its samples, its interval and its value."""
    estimate = bar.estimate
    if estimate is None or bar.rates is None:
        axis.text(most * 0.006, y, "failed: no rate", va="center", fontsize=7.5)
        return
    axis.barh(
        y,
        estimate.median,
        _BAR,
        color=theme.languages[bar.language],
        hatch=_HATCHES[bar.language],
        edgecolor=theme.background,
        linewidth=0,
    )
    # With a rim of the background's colour: to be seen on a bar and beside it.
    line: dict[str, Any] = {"color": theme.text, "zorder": 3}
    rim: dict[str, Any] = {"color": theme.background, "zorder": 2.5}
    ends = [estimate.low, estimate.high]
    axis.plot(ends, [y, y], linewidth=2.6, **rim)
    axis.plot(ends, [y, y], linewidth=1, **line)
    dots: dict[str, Any] = {"linestyle": "", "marker": _MARKERS[bar.language], "markeredgewidth": 0}
    axis.plot(bar.rates, [y] * len(bar.rates), markersize=4.6, **dots, **rim)
    axis.plot(bar.rates, [y] * len(bar.rates), markersize=3, **dots, **line)
    axis.text(
        max(estimate.high, *bar.rates) + most * 0.008,
        y,
        _thousands(estimate.median),
        va="center",
        fontsize=7.5,
    )


def _label(axis: "Axes", y: float, title: str, change: str, theme: Theme) -> None:
    """Name a step of the ladder, and say below it what it changed."""
    at_left: dict[str, Any] = {
        "textcoords": "offset points",
        "xycoords": ("axes fraction", "data"),
        "ha": "right",
    }
    axis.annotate(title, (0, y), (-6, 1), va="bottom", fontsize=9, **at_left)
    axis.annotate(change, (0, y), (-6, -2), va="top", fontsize=7, color=theme.faint, **at_left)


def _step_title(number: int, with_random: bool) -> str:
    chapter = find_chapter(str(number))
    again = ", with a fill" if chapter.then and not with_random else ""
    return f"{number}  {chapter.title}{again}"


def _step_change(number: int, with_random: bool) -> str:
    chapter = find_chapter(str(number))
    return chapter.change if with_random or not chapter.then else chapter.then


def _thousands(x: float) -> str:
    return f"{x:,.0f}".replace(",", "\N{THIN SPACE}")


def _second_axis(axis: "Axes", theme: Theme) -> None:
    """Say the same in Gb/s at the top."""
    upper = axis.secondary_xaxis("top", functions=(_gigabits, _megabytes))
    upper.tick_params(labelsize=7.5, colors=theme.faint, labelcolor=theme.faint)
    upper.set_xlabel("Gb/s", fontsize=7.5, color=theme.faint, loc="right", labelpad=3)
    upper.spines["top"].set_color(theme.grid)


def _gigabits(megabytes: Any) -> Any:
    return megabytes * 8e-3


def _megabytes(gigabits: Any) -> Any:
    return gigabits / 8e-3


def _legend(figure: "Figure", theme: Theme, y: float) -> None:
    from matplotlib.patches import Patch

    handles = [
        Patch(
            facecolor=theme.languages[language],
            hatch=_HATCHES[language],
            edgecolor=theme.background,
            linewidth=0,
            label=_NAMES[language],
        )
        for language in LANGUAGES
    ]
    figure.legend(
        handles=handles, loc="center right", bbox_to_anchor=(0.98, y + 0.012), ncols=2,
        frameon=False,
    )  # fmt: skip


def _ladder_in_words(recording: Recording, panels: Sequence[tuple[int, Sequence[_Bar]]]) -> str:
    sentences = ["Bars: the rate of each chapter's program, in Python and in C, in MB/s."]
    for heap_size, bars in panels:
        sentences.append(f"Heaps of {_bytes(heap_size)}:")
        for number, with_random in _steps(bars):
            said = [
                f"{_NAMES[bar.language]} {bar.estimate.median:.0f}"
                if bar.estimate
                else f"{_NAMES[bar.language]} failed"
                for bar in bars
                if (bar.chapter, bar.random) == (number, with_random)
            ]
            label = " ".join(_step_title(number, with_random).split())
            sentences.append(f"chapter {label}: {', '.join(sorted(said, reverse=True))};")
    return " ".join([*sentences, " ".join(caption(recording).split())])


def _bytes(n: int) -> str:
    return f"{n >> 20} MiB" if n >= 1 << 20 else f"{n / 1024:g} KiB"
