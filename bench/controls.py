# SPDX-License-Identifier: BSD-3-Clause
"""What a machine did between two recordings, as told by what did not change between them.

The peer, as pip installs it and as it is built here, and the bare loops are *controls*, but only
where both recordings say that they are the same builds. Each is a family: its points tell what the
machine did, and how exactly. Where families say different things, none is believed.
"""

import dataclasses
import itertools
from collections.abc import Sequence
from statistics import median

from bench.peers import build_key
from bench.status import by_setting, noise_floor
from bench.sweeps import PEERS
from spead_tutorial.measure.analysis import rates_by_round
from spead_tutorial.measure.baselines import CEILING
from spead_tutorial.measure.records import Recording

CONTROLS = (*PEERS, CEILING)
_FEWEST_POINTS = 3
_TAIL = 0.05
#: What runs the peer's programs, besides what their builds say.
_RUN_BY = ("python", "numpy")


@dataclasses.dataclass(frozen=True, slots=True)
class Drift:
    """What changed between two recordings though nothing had been changed."""

    ratio: float  # of what was measured again to what had been measured; 1 where one does not know
    low: float  # between these a ratio may be the machine's doing
    high: float
    why: tuple[str, ...]  # lines that say how one knows, and what is no control


#: The drift of what was measured in the same rounds.
STILL = Drift(1.0, 1.0, 1.0, ())


@dataclasses.dataclass(frozen=True, slots=True)
class _Family:
    """A control: its name, and its ratios of later to earlier, sorted."""

    name: str
    ratios: tuple[float, ...]

    @property
    def middle(self) -> float:
        return median(self.ratios)

    @property
    def spread(self) -> float:
        """How far its own ratios are from their median, as a share, but for the worst."""
        apart = sorted(_apart(ratio, self.middle) for ratio in self.ratios)
        return apart[-1 - int(_TAIL * len(apart))]

    def __str__(self) -> str:
        return f"{self.name} ({self.middle:.2f})"


def _apart(one: float, other: float) -> float:
    return max(one / other, other / one) - 1


def drift(earlier: Recording, later: Recording, threshold: float) -> Drift:
    """Find out what changed between two recordings though nothing had been changed."""
    families, why = _families(earlier, later)
    if not families:
        return _without_controls(earlier, later, why)
    low, high = _range(families)
    if not _agree(families, threshold):
        text = (
            f"In doubt: {_listed(families)} do not agree on what the machine did, so nothing is"
            f" corrected for, and a ratio between {low:.2f} and {high:.2f} cannot be told"
        )
        return Drift(1.0, low, high, (*why, text))
    middle = median(ratio for family in families for ratio in family.ratios)
    text = (
        f"Drift of the machine: {middle:.2f} times as fast, from {low:.2f} to {high:.2f}, by"
        f" {_listed(families)}, which did not change"
    )
    return Drift(middle, low, high, (*why, text))


def _families(earlier: Recording, later: Recording) -> tuple[list[_Family], tuple[str, ...]]:
    """Return the controls that can be trusted so far, and why others cannot."""
    first, second = by_setting(earlier), by_setting(later)
    ratios: dict[str, list[float]] = {}
    for setting in first.keys() & second.keys():
        before, after = (
            list(rates_by_round(settings[setting]).values()) for settings in (first, second)
        )
        if setting[0].implementation in CONTROLS and before and after:
            ratio = median(after) / median(before)
            ratios.setdefault(setting[0].implementation, []).append(ratio)
    families, why = [], []
    for name in (name for name in CONTROLS if name in ratios):
        n, reason = len(ratios[name]), _changed(name, (earlier, later))
        if reason is None and n < _FEWEST_POINTS:
            reason = f"both records have {n} points of it, fewer than {_FEWEST_POINTS}"
        if reason is None:
            families.append(_Family(name, tuple(sorted(ratios[name]))))
        else:
            why.append(f"Not a control: {name}, as {reason}")
    return families, tuple(why)


def _changed(name: str, recordings: Sequence[Recording]) -> str | None:
    """Say why a control need not be the same in two recordings; None where it is."""
    headers = [header for recording in recordings for header in recording.headers]
    for key in (build_key(name), *(_RUN_BY if name in PEERS else ())):
        found = dict.fromkeys(header.versions.get(key) for header in headers)
        if None in found:
            return f"a record does not name its {key.removeprefix(f'{name}-')}"
        if len(found) > 1:
            return f"its {key.removeprefix(f'{name}-')} was {' and '.join(map(str, found))}"
    return None


def _agree(families: Sequence[_Family], threshold: float) -> bool:
    """Say whether all families say the same, within their own spread."""
    return all(
        _apart(one.middle, other.middle) <= max(threshold, one.spread, other.spread)
        for one, other in itertools.combinations(families, 2)
    )


def _range(families: Sequence[_Family]) -> tuple[float, float]:
    """Return the least and the greatest of families' ratios, but for the worst of each."""
    ends = [
        (family.ratios[cut], family.ratios[-1 - cut])
        for family in families
        for cut in [int(_TAIL * len(family.ratios))]
    ]
    return min(low for low, _ in ends), max(high for _, high in ends)


def _without_controls(earlier: Recording, later: Recording, why: tuple[str, ...]) -> Drift:
    """Know nothing of the machine but how far one thing is from itself in a recording."""
    floors = [floor for floor in map(noise_floor, (earlier, later)) if floor is not None]
    floor = max(floors, default=0.0)
    text = (
        "No control shows what the machine did between the records: a difference has to be more"
        f" than the {floor:.0%} by which the same case differs within one"
    )
    return Drift(1.0, 1 / (1 + floor), 1 + floor, (*why, text))


def _listed(families: Sequence[_Family]) -> str:
    *most, last = map(str, families)
    return f"{', '.join(most)} and {last}" if most else last
