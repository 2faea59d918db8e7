# SPDX-License-Identifier: BSD-3-Clause
"""Kinds of values that several commands take."""

import math
import re

import click

from bench.compare import Thresholds
from spead_tutorial.catalogue import Chapter, find_chapter

__all__ = ["ChapterType", "SizeType", "Threshold", "ThresholdType", "thresholds"]

#: A chapter's number, or None for all, and a share.
Threshold = tuple[int | None, float]


class ChapterType(click.ParamType[Chapter]):
    """A chapter, as one types it."""

    name = "chapter"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> Chapter:
        """Find it."""
        try:
            return value if isinstance(value, Chapter) else find_chapter(str(value))
        except ValueError as error:
            raise click.UsageError(str(error), ctx) from None


class SizeType(click.ParamType[int]):
    """Bytes, or how many KiB or MiB."""

    name = "size"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> int:
        """Take it apart."""
        found = re.fullmatch(r"(\d+)(B|KiB|MiB)?", str(value).replace(" ", ""))
        if found is None:
            raise click.UsageError(
                f"{value!r} is no size: it must be like 8192, 64KiB or 1MiB", ctx
            )
        return int(found[1]) << {"KiB": 10, "MiB": 20}.get(found[2], 0)


class ThresholdType(click.ParamType[Threshold]):
    """A share, such as ``0.05``; or that of a chapter, such as ``10=0.1``."""

    name = "threshold"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> Threshold:
        """Take it apart."""
        chapter, equals, share = str(value).rpartition("=")
        try:
            number = find_chapter(chapter).number if equals else None
            if not (0 <= float(share) < math.inf):
                raise ValueError
        except ValueError:
            raise click.UsageError(
                f"--threshold is {value!r}: it must be like 0.05, or like 10=0.1 for chapter 10",
                ctx,
            ) from None
        return number, float(share)


def thresholds(given: tuple[Threshold, ...]) -> Thresholds:
    """Put together what was given; of two for the same, the last one counts."""
    shares = dict(given)
    general = shares.pop(None, Thresholds().general)
    return Thresholds(general, {n: share for n, share in shares.items() if n is not None})
