# SPDX-License-Identifier: BSD-3-Clause
"""The pictures: what ``pictures.toml`` says of each, and how a folder's records are drawn."""

import dataclasses
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from bench.peers import PEER_FROM_SOURCE
from spead_tutorial.chapters.catalogue import MEASURED
from spead_tutorial.measure.baselines import CEILING, PEER
from spead_tutorial.measure.records import OURS, RecordError, Series, read
from spead_tutorial.results import plots
from spead_tutorial.results.plots import Draw
from spead_tutorial.results.plots.curves import RATE
from spead_tutorial.results.plots.theme import NAMES

__all__ = ["FIGURES", "PICTURES", "RESULTS", "SPECIFIED", "Picture", "draw"]

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "bench" / "results"
FIGURES = ROOT / "docs" / "figures"
SPECIFIED = ROOT / "bench" / "pictures.toml"
#: The peer's builds: in C++, and of those for Python the best that there is.
_BUILDS = {
    "spead2 in C++": (PEER_FROM_SOURCE, "cpp"),
    "spead2 from source": (PEER_FROM_SOURCE, "python"),
    "spead2 from PyPI": (PEER, "python"),
}


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

    def line(self, language: str) -> Series:
        return Series(OURS, language, self.program, self.variant)


class _Peer(msgspec.Struct, array_like=True, frozen=True):
    """A program of the peer's, what its lines are called besides, and its variant."""

    program: str
    note: str = ""
    variant: str = ""


class _Specified(msgspec.Struct, forbid_unknown_fields=True):
    """A picture that `plots` has by name; or rates over sizes, with two titles before and after."""

    name: str
    sweep: str
    draw: str = ""
    titles: list[tuple[str, str]] = []  # each with its subtitle
    before: _Step = _Step("", "", "")
    steps: list[_Step] = []
    bare: str = ""  # variant of the bare loop; none where it is empty
    peers: list[_Peer] = []  # for each title
    builds: tuple[str, ...] = tuple(_BUILDS)
    largest: int | None = None
    rate: str = RATE

    def pictures(self) -> Iterator[Picture]:
        if self.draw:
            yield Picture(f"{self.name}.svg", self.sweep, getattr(plots, self.draw))
        elif len(self.titles) == 1:
            yield Picture(f"{self.name}.svg", self.sweep, self._rates(0))
        else:
            before, after = self._rates(0, "before"), self._rates(1, "after")
            for one, other in ((before, after), (after, before)):
                drawn = dataclasses.replace(one, beside=other)
                yield Picture(f"{self.name}-{one.part}.svg", self.sweep, drawn)

    def _rates(self, number: int, part: str = "") -> plots.Sweep:
        (title, subtitle), peers = self.titles[number], self.peers[number : number + 1]
        return plots.Sweep(
            title,
            tuple(
                (step.line(language), ": ".join(filter(None, (NAMES[language], step.called))))
                for step in reversed(self.steps)
                for language in MEASURED
            ),
            self.sweep,
            bare=Series(CEILING, "c", CEILING, self.bare) if self.bare else None,
            before=tuple(
                (self.before.line(language), step.line(language))
                for step in self.steps
                for language in MEASURED
            ),
            gained=self.before.called,
            part=part,
            peers=tuple(
                (Series(*_BUILDS[build], peer.program, peer.variant), f"{build}{peer.note}")
                for peer in peers
                for build in self.builds
            ),
            subtitle=subtitle,
            largest=self.largest,
            rate=self.rate,
        )


class _File(msgspec.Struct, forbid_unknown_fields=True):
    picture: list[_Specified]


PICTURES = tuple(
    picture
    for one in msgspec.toml.decode(SPECIFIED.read_bytes(), type=_File).picture
    for picture in one.pictures()
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
                unfinished.write_bytes(plots.render(picture.draw, recording, plots.LIGHT))
                unfinished.replace(name)
            finally:
                unfinished.unlink(missing_ok=True)
            drawn.append(name)
        except (RecordError, ValueError, plots.MissingError) as error:
            problems.append(f"{picture.name}: {error}")
    return drawn, problems
