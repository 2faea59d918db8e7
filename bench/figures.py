# SPDX-License-Identifier: BSD-3-Clause
"""The pictures: what ``pictures.toml`` says of each, and how a folder's records are drawn."""

import dataclasses
from collections.abc import Iterable
from pathlib import Path

import msgspec

from spead_tutorial.measure.baselines import CEILING
from spead_tutorial.measure.records import RecordError, Series, read
from spead_tutorial.results import plots
from spead_tutorial.results.plots import Draw
from spead_tutorial.results.plots.sweep import SENT, compared

__all__ = ["FIGURES", "PICTURES", "RESULTS", "SPECIFIED", "Picture", "draw"]

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "bench" / "results"
FIGURES = ROOT / "docs" / "figures"
SPECIFIED = ROOT / "bench" / "pictures.toml"


@dataclasses.dataclass(frozen=True, slots=True)
class Picture:
    """One picture."""

    name: str  # file name
    sweep: str  # from which sweep's record
    draw: Draw  # what draws it


class _Step(msgspec.Struct, array_like=True, frozen=True):
    """A program of ours, its variant, and what a picture calls it."""

    program: str
    variant: str
    called: str


class _Specified(msgspec.Struct, forbid_unknown_fields=True):
    """A picture that `plots` has by name; or rates over sizes, before and after a change."""

    name: str
    sweep: str
    draw: str = ""
    finding: str = ""  # how its title begins
    before: _Step = _Step("", "", "")
    after: _Step = _Step("", "", "")
    bare: str = ""  # variant of the bare loop; none where it is empty
    rate: str = SENT
    at_once: int = 0  # heaps that are to be in a cache together

    @property
    def picture(self) -> Picture:
        draw = getattr(plots, self.draw) if self.draw else self._rates()
        return Picture(f"{self.name}.svg", self.sweep, draw)

    def _rates(self) -> plots.Sweep:
        before, after = self.before, self.after
        return plots.Sweep(
            self.finding,
            compared((before.program, before.variant), (after.program, after.variant)),
            (before.called, after.called),
            self.sweep,
            limit=Series(CEILING, "c", CEILING, self.bare) if self.bare else None,
            subtitle=f"Chapter {self.name.split('-')[1]}",
            rate=self.rate,
            at_once=self.at_once,
        )


class _File(msgspec.Struct, forbid_unknown_fields=True):
    picture: list[_Specified]


PICTURES = tuple(
    one.picture for one in msgspec.toml.decode(SPECIFIED.read_bytes(), type=_File).picture
)


def draw(source: Path, output: Path, sweeps: Iterable[str] = ()) -> tuple[list[Path], list[str]]:
    """Draw the pictures of a folder's records."""
    wanted = tuple(sweeps)
    drawn: list[Path] = []
    problems: list[str] = []
    output.mkdir(parents=True, exist_ok=True)
    for picture in PICTURES:
        record = source / f"{picture.sweep}.jsonl"
        if (wanted and picture.sweep not in wanted) or not record.exists():
            continue
        try:
            name, recording = output / picture.name, read(record)
            unfinished = name.with_suffix(".part")
            try:
                unfinished.write_bytes(plots.render(picture.draw(recording), plots.LIGHT))
                unfinished.replace(name)
            finally:
                unfinished.unlink(missing_ok=True)
            drawn.append(name)
        except (RecordError, ValueError, plots.MissingError) as error:
            problems.append(f"{picture.name}: {error}")
    return drawn, problems
