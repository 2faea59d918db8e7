# SPDX-License-Identifier: BSD-3-Clause
"""Words of a command line as values."""

import math
from collections.abc import Callable
from typing import Any, TypeVar

import click

__all__ = ["Number", "parsed"]

_T = TypeVar("_T")


class Number(click.FloatRange):
    """A number in a range, which neither nan nor inf is."""

    def convert(self, value: Any, param: Any, ctx: Any) -> float:
        number = float(super().convert(value, param, ctx))
        return number if math.isfinite(number) else self.fail(f"{value} is no number", param, ctx)


def parsed(parse: Callable[[str], _T]) -> Callable[[str], _T]:
    """Return a type for click, which refuses a word with what a ValueError says."""

    def convert(word: str) -> _T:
        try:
            return parse(word)
        except ValueError as error:
            raise click.UsageError(str(error)) from None

    return convert
