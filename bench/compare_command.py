# SPDX-License-Identifier: BSD-3-Clause
"""The command that holds records against each other: ``python -m bench compare``."""

from pathlib import Path

import click

from bench import compare as compare_module
from spead_tutorial.records import RecordError, read

__all__ = ["compare"]

_FAILED = 1
_FILE = click.Path(dir_okay=False, path_type=Path)


@click.command()
@click.argument("one", type=_FILE)
@click.argument("other", type=_FILE, required=False)
@click.option("--before", metavar="NAME", help="Implementation to take of the first.")
@click.option("--after", metavar="NAME", help="Implementation to take of the second.")
@click.option("--threshold", type=click.FloatRange(0.0), default=0.05, show_default=True,
              help="Differences that are smaller do not count.")  # fmt: skip
@click.option("--different-machines", is_flag=True, help="Compare them all the same.")
def compare(
    one: Path,
    other: Path | None,
    before: str | None,
    after: str | None,
    threshold: float,
    different_machines: bool,
) -> int:
    """Say for each point whether OTHER is faster or slower than ONE, or one cannot tell.

    With one record and --before and --after, two implementations in it are compared, round by
    round. The exit status is 1 where something is slower, or failed.

    \b
    Example: python -m bench compare old/tut-10.jsonl new/tut-10.jsonl
    Example: python -m bench compare bench/results/tut-10.jsonl --before spead2 --after ours
    """
    if other is None and (before is None or after is None):
        raise click.UsageError("give two records, or one with --before and --after")
    first = read(one)
    second = first if other is None else read(other)
    comparison = compare_module.compare(
        first,
        second,
        threshold=threshold,
        before=before,
        after=after,
        different_machines=different_machines,
    )
    if not comparison.verdicts:
        raise RecordError("the records have no point in common")
    click.echo(compare_module.table(comparison))
    return _FAILED if any(v.word in ("slower", "failed") for v in comparison.verdicts) else 0
