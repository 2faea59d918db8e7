# SPDX-License-Identifier: BSD-3-Clause
"""What every sample of a receiver has, whatever it received and was sent by."""

import dataclasses
import os
from collections.abc import Mapping
from typing import Any

from spead_tutorial.measure.case import Step, stolen_ns
from spead_tutorial.records import Sample

__all__ = ["Begun"]


@dataclasses.dataclass(frozen=True, slots=True)
class Begun:
    """A sample that is being taken, and what the machine had to do before."""

    step: Step  # what it is a sample of
    heaps: int  # how many are sent
    load: float = dataclasses.field(default_factory=lambda: os.getloadavg()[0])
    stolen: int = dataclasses.field(default_factory=stolen_ns)

    def done(
        self, chapter: int, way: tuple[str, str], failure: str | None, measured: Mapping[str, Any]
    ) -> Sample:
        """Return the sample."""
        case = self.step.case
        return Sample(
            case=case.name,
            round=self.step.number,
            warm_up=self.step.warm_up,
            chapter=chapter,
            program=case.program,
            language=case.language,
            random=False,
            heaps=self.heaps,
            heap_size=case.heap_size,
            packet_size=case.packet_size,
            device=way[0],
            kind=way[1],
            failure=failure,
            implementation=case.implementation,
            variant=case.different,
            attempt=self.step.attempt,
            load=round(self.load, 2),
            steal_ns=max(0, stolen_ns() - self.stolen),
            **measured,
        )
