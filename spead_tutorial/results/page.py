# SPDX-License-Identifier: BSD-3-Clause
"""A page about a record: one file to look at and to pass on, without scripts or a network."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader
from markupsafe import Markup

from spead_tutorial._shown import shown_lines
from spead_tutorial.measure.records import Header
from spead_tutorial.results.plots.theme import DARK, LIGHT, Theme
from spead_tutorial.results.units import size

_ROLES = ("python", "c")  # as templates have them, languages in small letters


def page(template: Path, header: Header, pictures: Sequence[str], **more: Any) -> str:
    """Fill a template that extends ours; pictures are SVGs, one as it is light, and as it is dark.

    It needs a ``title``, the ``failures`` and what does it ``again``.
    """
    environment = Environment(
        loader=FileSystemLoader([template.parent, Path(__file__).parent]),
        autoescape=True,
        finalize=_seen,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    caches = header.machine.get("caches_bytes") or {}
    return environment.get_template(template.name).render(
        header=header,
        light=_colours(LIGHT),
        dark=_colours(DARK),
        pictures={
            theme.name: Markup(_inline(svg, theme.name))
            for svg, theme in zip(pictures, (LIGHT, DARK), strict=False)
        },
        size=size,
        caches=", ".join(f"{name} {size(of)}" for name, of in caches.items()),
        **more,
    )


def _seen(value: object) -> object:
    """Have any text of the record be seen; what is markup already, such as a picture, is ours."""
    is_text = isinstance(value, str) and not isinstance(value, Markup)
    return shown_lines(str(value)) if is_text else value


def _colours(theme: Theme) -> str:
    named = {name: getattr(theme, name) for name in ("background", "text", "faint", "grid")}
    named |= {name: theme.colours[name] for name in _ROLES}
    named["link"] = theme.colours["python"]
    return " ".join(f"--{name}: {colour};" for name, colour in named.items())


def _inline(svg: str, name: str) -> str:
    """Make a picture a part of a page: its names are then the page's, and must not be another's."""
    svg = re.sub(r"\s*<metadata>.*?</metadata>", "", svg[svg.index("<svg") :], flags=re.DOTALL)
    ids = set(re.findall(r'(?<=\sid=")[^"]+', svg))

    def renamed(match: re.Match[str]) -> str:
        names = (f"{name}-{id}" if id in ids else id for id in match[2].split())
        return match[1] + " ".join(names)

    return re.sub(r'(\s(?:id|aria-labelledby)="|href="#|url\(#)([^")]+)', renamed, svg)
