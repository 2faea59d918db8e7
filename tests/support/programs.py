# SPDX-License-Identifier: BSD-3-Clause
"""Cases of many programs and languages, of which most are for the thorough run."""

import sys
from collections.abc import Callable, Iterable
from typing import Any

import pytest
from _pytest.mark import ParameterSet

from spead_tutorial.measure.programs import built
from support import ROOT
from support.senders import Planted
from support.typed import Typed, run

PATIENCE_S = 60
#: Where programs are in each language, and how their files end.
FOLDERS = {
    "python": ("spead_tutorial/chapters", ".py"),
    "c": ("csrc/chapters", ".c"),
    "cpp": ("csrc/chapters/cpp", ".cpp"),
}
#: The programs of all languages.
PROGRAMS = [
    path
    for folder, ending in FOLDERS.values()
    for path in sorted((ROOT / folder).glob(f"tut_*{ending}"))
]
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


def alone_but(plain: str, every: Iterable[Planted]) -> list[ParameterSet]:
    """Return all cases: those of another name are left to ``make alone``."""
    marks = pytest.mark.alone
    return [
        pytest.param(one, id=one.name, marks=() if one.name == plain else marks) for one in every
    ]


def languages(*plain: str) -> pytest.MarkDecorator:
    """Parametrize with all languages, of which some are enough for ``make test``."""
    each = cases(((language,) for language in built()), lambda language: language in plain)
    return pytest.mark.parametrize("language", each)


each_language = pytest.mark.parametrize("language", built())
#: For what costs a program in C next to nothing, and one in Python its start.
in_c = languages("c")


def ended(argv: list[str], **how: Any) -> Typed:
    """Run a program to its end."""
    return run(*argv, timeout=PATIENCE_S, **how)


def refusal(
    argv: list[str],
    parse: Callable[[], object] | None,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> str:
    """Return the last line of a program that refuses its options: of what parses them, if told."""
    if parse is not None:  # what all programs in Python call
        monkeypatch.setattr(sys, "argv", argv[1:])
        with pytest.raises(SystemExit, match="2"):
            parse()
        out, errors = capsys.readouterr()
    else:
        done = ended(argv)
        assert done.returncode == 2
        out, errors = done.stdout, done.stderr
    assert out == ""
    return errors.splitlines()[-1]
