# SPDX-License-Identifier: BSD-3-Clause
"""Receivers with one known fault each, and some without: what a diagnosis is tried on.

Each is started as PROGRAM HOST PORT …, and reads until it is ended. One more word mends it.
"""

import dataclasses
from pathlib import Path

from spead_tutorial.lab import sink_path
from support.senders import Planted

__all__ = ["RECEIVERS", "PlantedReceiver"]

HERE = Path(__file__).parent


@dataclasses.dataclass(frozen=True, slots=True)
class PlantedReceiver(Planted):
    """A receiver whose fault is known."""

    fault: str = ""  # what it is told to do, where it can do several things
    options: tuple[str, ...] = ()  # what the command needs to find it

    def command(self, folder: Path, *, mended: bool = False) -> list[str]:
        """Return how it is started."""
        program = [str(sink_path())] if self.source is None else self.start(folder)
        return [*program, "{host}", "{port}", *filter(None, [self.fault]), *["mended"] * mended]


def _receiver(place: str, kind: str | None, fault: str = "", *options: str) -> PlantedReceiver:
    language, _, name = place.partition("/")
    title = f"{language} {fault or kind or 'faultless'}"
    return PlantedReceiver(title, kind, HERE / name, fault=fault, options=options)


#: Every one.
RECEIVERS = (
    *(_receiver("c/reading.c", one, one) for one in ("sleeps", "small-buffer", "fresh-memory")),
    _receiver("c/reading.c", "call-per-packet", "call-per-packet", "--mtu", "1500"),
    _receiver("c++/locked.cpp", "waits-for-thread"),
    _receiver("python/reading.py", "computes", "computes"),
    _receiver("python/reading.py", "garbage", "pauses"),
    _receiver("python/reading.py", "spins", "stream"),
    _receiver("go/logging.go", "logs"),
    _receiver("javascript/writing.js", "formats"),
    _receiver("c/reading.c", None),
    PlantedReceiver("c sink", None),
)
