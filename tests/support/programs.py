# SPDX-License-Identifier: BSD-3-Clause
"""Cases of many programs and languages, of which most are for the thorough run."""

from collections.abc import Callable, Iterable

import pytest
from _pytest.mark import ParameterSet

from spead_tutorial.measure.programs import built
from support import ROOT

PATIENCE_S = 60
#: Where programs are in each language, and how their files end.
FOLDERS = {
    "python": ("spead_tutorial/chapters", ".py"),
    "c": ("csrc/chapters", ".c"),
    "cpp": ("csrc/chapters/cpp", ".cpp"),
}
PEERS = sorted(ROOT.glob("spead_tutorial/peer/tut_*.py"))


def name_of(value: object) -> str | None:
    """Return the name of a program, for a case's id; pytest finds one for what has none."""
    name = getattr(value, "name", None)
    return name if isinstance(name, str) else None


def source(name: str, language: str) -> str:
    folder, ending = FOLDERS[language]
    return (ROOT / folder / f"{name}{ending}").read_text()


def cases(every: Iterable[tuple[object, ...]], plain: Callable[..., bool]) -> list[ParameterSet]:
    """Return all cases: those that are not plain are left to the thorough run."""
    thorough = pytest.mark.thorough
    return [pytest.param(*one, marks=() if plain(*one) else thorough) for one in every]


def languages(*plain: str) -> pytest.MarkDecorator:
    """Parametrize with all languages, of which some are enough for ``make test``."""
    each = cases(((language,) for language in built()), lambda language: language in plain)
    return pytest.mark.parametrize("language", each)


each_language = pytest.mark.parametrize("language", built())
#: For what costs a program in C next to nothing, and one in Python its start.
in_c = languages("c")
