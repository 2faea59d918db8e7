# SPDX-License-Identifier: BSD-3-Clause
"""Words of a command line as values."""

from collections.abc import Callable
from typing import TypeVar

import click

__all__ = ["parsed"]

_T = TypeVar("_T")


def parsed(parse: Callable[[str], _T]) -> Callable[[str], _T]:
    """Return a type for click, which refuses a word with what a ValueError says."""

    def convert(word: str) -> _T:
        try:
            return parse(word)
        except ValueError as error:
            raise click.UsageError(str(error)) from None

    return convert
