# SPDX-License-Identifier: BSD-3-Clause
"""Packets as tables, which say without colours what they say with them."""

import html
from collections.abc import Mapping, Sequence

from spead_tutorial import wire

__all__ = ["packet"]

#: For the fields of a table: how its row is tinted. The words say the same without colours.
_TINTS = {
    "header": "rgba(120, 120, 120, 0.16)",
    "pointer": "rgba(0, 103, 165, 0.20)",
    "descriptor": "rgba(204, 85, 0, 0.20)",
    "value": "rgba(0, 128, 90, 0.20)",
    "padding": "rgba(120, 120, 120, 0.08)",
}
_MOST_SHOWN = 16


class _Table:
    """Rows of a packet, which a front end shows as HTML and a terminal as text."""

    def __init__(self, title: str, fields: Sequence[wire.Field]) -> None:
        self._title = title
        self._fields = fields

    def __repr__(self) -> str:
        return f"{self._title}\n{wire.format_table(self._fields)}"

    def _repr_html_(self) -> str:
        cell = "text-align: left; padding: 1px 8px"
        head = "".join(
            f'<th scope="col" style="{cell}">{name}</th>'
            for name in ("offset", "bytes", "part", "field", "meaning")
        )
        rows = "".join(map(self._row, self._fields))
        caption = f'<caption style="text-align: left">{html.escape(self._title)}</caption>'
        return f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"

    def _row(self, field: wire.Field) -> str:
        part = _part(field)
        raw = field.raw[:_MOST_SHOWN].hex(" ")
        if len(field.raw) > _MOST_SHOWN:
            raw += f" … ({len(field.raw)} bytes)"
        indent = "\N{NO-BREAK SPACE}" * 4 * field.depth
        style = f"text-align: left; padding: 1px 8px; background-color: {_TINTS[part]}"
        return "<tr>{}</tr>".format(
            "".join(
                f'<td style="{style}">{text}</td>'
                for text in (
                    str(field.offset),
                    f"<code>{raw}</code>",
                    part,
                    indent + html.escape(field.field),
                    html.escape(field.meaning),
                )
            )
        )


def _part(field: wire.Field) -> str:
    """Say which part of a packet a row belongs to."""
    if field.depth or "descriptor" in field.field:
        return "descriptor"
    if field.field == "item pointer":
        return "pointer"
    if field.field == "padding":
        return "padding"
    return "value" if "value" in field.field or field.field == "payload" else "header"


def packet(
    data: bytes | Sequence[wire.Field],
    *,
    names: Mapping[int, str] | None = None,
    title: str = "",
) -> None:
    """Show a packet as a table: where, which bytes, what they are, and what they say.

    Parameters
    ----------
    data : bytes-like, or sequence of Field
        A packet, or what `spead_tutorial.wire.dissect_heap` made of one, which knows of
        the heap's other packets too.
    names : mapping from int to str, optional
        Names of items by their id.
    title : str
        What stands above; by default how long it is.
    """
    from IPython.display import display

    if isinstance(data, bytes | bytearray | memoryview):
        fields: Sequence[wire.Field] = wire.dissect(data, names=names)
    else:
        fields = data
    n_bytes = sum(len(field.raw) for field in fields)
    display(_Table(title or f"A packet of {n_bytes} bytes", fields))
