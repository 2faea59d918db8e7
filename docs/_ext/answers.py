# SPDX-License-Identifier: BSD-3-Clause
"""What a picture answers on a page: its points, and which of its lines can be chosen.

It is HTML that ``figures.js`` brings to life. Each point lies where it is in the picture, and says
what it is; the script reads there what it draws anew. Names are this project's own: the script
takes it that they have no letter with a meaning in HTML.
"""

import html
import json
from pathlib import Path
from typing import Any

from spead_tutorial.measure import stats, units
from spead_tutorial.results.plots.marks import PACKET, PERCENT, RATE, TIMES

_PLACES = ("x", "y", "narrow-x", "narrow-y")


def overlay(path: Path) -> tuple[str, str]:
    """Return the points of a picture, and what can be chosen of it, if anything."""
    if not path.exists():
        return "", ""
    data = json.loads(path.read_text())
    points = [(data["lines"][index], values) for index, *values in data["points"]]
    return "".join(_spot(line, values) for line, values in points), _explorer(points)


def said(line: dict[str, Any], values: list[float]) -> str:
    """Say the value of a point, its interval, and its rounds."""
    size, value, low, high, n = values[:5]
    gain = line["unit"] == TIMES
    middle = units.times(value) if gain else f"{units.number(value)} {line['unit']}"
    ends = " to ".join(f"{x:.2f}" if gain else units.number(x) for x in (low, high))
    spread = "range " if n < stats.FEWEST else ""
    counted = "runs" if line["unit"] == PERCENT else "rounds"
    return f"{_name(line, size)}: {middle} ({spread}{ends}), {n} {counted}"


def _name(line: dict[str, Any], size: float) -> str:
    return f"{line['name']}, {_at(line, size)}"


def _at(line: dict[str, Any], x: float) -> str:
    """Say what a point is at: the size of a heap, or of a packet, or a rate."""
    if line["over"] == RATE:
        return f"at {units.number(x)} MB/s"
    return units.bytes_text(x) if line["over"] == PACKET else units.size(x)


def _group(line: dict[str, Any]) -> str:
    return str(line["group"] or line["name"])


def _spot(line: dict[str, Any], values: list[float]) -> str:
    at, value, low, high, n, *places = values
    data = {
        "name": _name(line, at),
        "group": _group(line),
        "row": line["row"],
        "role": line["role"],
        "key": "|".join([*line["key"], str(at)]) if line["key"] else "",
        "at": at,
        "size": _at(line, at),
        "value": value,
        "low": low,
        "high": high,
        "rounds": n,
    }
    where = (f"--{name}: {100 * x:.2f}%" for name, x in zip(_PLACES, places, strict=False))
    attributes = {f"data-{name}": text for name, text in data.items()} | {
        "aria-label": said(line, values),
        "style": "; ".join(where),
    }
    written = (f'{name}="{html.escape(str(text))}"' for name, text in attributes.items())
    return f'<span class="spot" role="img" tabindex="-1" {" ".join(written)}></span>'


def _explorer(points: list[tuple[dict[str, Any], list[float]]]) -> str:
    tip = '<div class="tip" aria-hidden="true" hidden></div>'
    lines = [(line, values[0]) for line, values in points if line["key"]]
    if not lines:
        return tip
    is_ladder = bool(lines[0][0]["row"])
    groups = list(dict.fromkeys(_group(line) for line, _ in lines))
    if not is_ladder:
        groups.reverse()  # what a picture is about is drawn last
    boxes = [_box(one, True) for one in groups]
    if is_ladder:
        sizes = dict.fromkeys(units.size(at) for _, at in lines)
        boxes += [_box(one, not n) for n, one in enumerate(sizes)]
    return (
        f'{tip}<details class="explore" hidden>'
        "<summary>Choose lines, or add a record of your own</summary>"
        f"<fieldset><legend>Shown</legend>{''.join(boxes)}</fieldset>"
        '<label>Your record, results/….jsonl: <input type="file" accept=".jsonl"></label>'
        '<p role="status">It can be dropped here, too. It is read in this page, and sent nowhere.'
        '</p><svg role="group" aria-label="What was chosen"></svg></details>'
    )


def _box(name: str, is_checked: bool) -> str:
    value, checked = html.escape(name), " checked" * is_checked
    return f'<label><input type="checkbox" value="{value}"{checked}> {value}</label>'
