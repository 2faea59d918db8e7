# SPDX-License-Identifier: BSD-3-Clause
"""The command line of the harness: ``python -m bench``.

Exit status: 0 where all went well; 1 where something could not be done, failed, or became
slower; 2 where it was asked for wrongly; 3 where cases were skipped that cannot run here; 130
after Ctrl-C, 143 after SIGTERM, 129 after SIGHUP.
"""

import contextlib
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import click

from bench import compare, figures
from bench import status as status_module
from bench.peers import PEER_FROM_SOURCE, find_installation
from bench.plan import Plan, measure, plan_of
from bench.senders import Installed
from bench.sweeps import SIZES, SWEEPS, Sweep, find_sweep
from spead_tutorial.measure.records import RecordError, Recording, locked, read
from spead_tutorial.measure.rounds import left
from spead_tutorial.measure.search import settled
from spead_tutorial.results.tables import plain
from spead_tutorial.tools.command_line import Whole, as_process, parsed
from spead_tutorial.tools.progress import Steps

RESULTS = Path("results", "bench")
_FAILED, _SKIPPED = 1, 3
_FILE = click.Path(dir_okay=False, path_type=Path)
_FOLDER = click.Path(file_okay=False, path_type=Path)


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
def cli() -> None:
    """Measure the chapters honestly, beside a peer and bare system calls.

    Example: python -m bench run heap-sizes --quick
    """


# ---- Measuring ----


@cli.command()
@click.argument("sweeps", nargs=-1, type=parsed(find_sweep))
@click.option("--quick", "size", flag_value="quick", help="Fewer sizes, shorter samples.")
@click.option("--full", "size", flag_value="full", default=True, help="Everything (the default).")
@click.option("--tiny", "size", flag_value="tiny", hidden=True)
@click.option("--rounds", type=Whole(1, 1000), help="Rounds that count (quick 5, full 9).")
@click.option("-o", "--output", type=_FOLDER, default=RESULTS, show_default=True,
              help="Folder for the records.")  # fmt: skip
@click.option("--dry-run", is_flag=True, help="Say what would be done.")
@click.option("--restart", is_flag=True, help="Throw away what a record holds already.")
@click.option("--beside", "others", multiple=True, metavar="NAME=PYTHON",
              help="Measure another installation of the package in the same rounds.")  # fmt: skip
@click.option("--plot", is_flag=True, help="Draw the pictures afterwards.")
@click.option("--scheduler", metavar="ADDRESS",
              help="Have the workers of a scheduler of Dask's share each sweep.")  # fmt: skip
def run(
    sweeps: tuple[Sweep, ...],
    size: str,
    rounds: int | None,
    output: Path,
    dry_run: bool,
    restart: bool,
    others: tuple[str, ...],
    plot: bool,
    scheduler: str | None,
) -> int:
    """Measure SWEEPS; all of them by default (--dry-run says which there are).

    A record is a file for each sweep. What it holds already is not measured again: after
    Ctrl-C, SIGTERM or a crash, the same command goes on from there, and more --rounds are added.
    A sample that failed is repeated: the record keeps both, and the later one counts.

    With --scheduler, each worker of Dask's takes the cases of some sizes: workers have to be of one
    kind, and each on a machine of its own. What is measured on one that is lost is missing, and
    the same command goes on with it.

    \b
    Example: python -m bench run heap-sizes --quick --plot
    Example: python -m bench run heap-sizes --rounds 18
    """
    installations = dict(_installation(text) for text in others)
    outcomes = set()
    with contextlib.nullcontext() if dry_run else locked(output):
        for sweep in sweeps or SWEEPS:
            plan = plan_of(sweep, SIZES[size], rounds, installations)
            path = output / f"{sweep.name}.jsonl"
            if restart and not dry_run:
                path.unlink(missing_ok=True)
            outcomes.add(_say_what_is_planned(sweep, plan, path))
            if plan.cases and not dry_run:
                outcomes.add(_measure(plan, path, scheduler))
                if plot and any(picture.sweep == sweep.name for picture in figures.PICTURES):
                    _draw(output, output.parent / "figures", sweep.name)
    return _worst(outcomes)


def _measure(plan: Plan, path: Path, scheduler: str | None) -> int:
    """Measure, show what it came to, and return whether something failed."""
    with contextlib.ExitStack() as stack:
        shared = None
        if scheduler is not None:
            from bench.shared import sharing  # which needs Dask

            shared = stack.enter_context(sharing(scheduler, plan))
        shown = stack.enter_context(_shown(plan, path))
        recording = measure(plan, path, shown, _say, shared)
    lines_missing = left(plan.steps(), recording)
    return max(_show(settled(recording)), _FAILED if lines_missing else 0)


@contextlib.contextmanager
def _shown(plan: Plan, path: Path) -> Iterator[Steps]:
    """Show how far a measurement has come; after Ctrl-C, what there is of it."""
    try:
        with Steps() as shown:
            yield shown
    except KeyboardInterrupt:
        click.echo(err=True)
        _say(f"{_kept(plan, path)}, and the same command goes on from there")
        raise


def _kept(plan: Plan, path: Path) -> str:
    wanted = list(plan.steps())
    n = len(wanted) - len(left(wanted, _read(path)))
    return f"{n} of {len(wanted)} samples have been taken: they are in {path}"


def _show(recording: Recording, more: Iterable[str] = ()) -> int:
    """Show a recording, and what makes it uncertain; return whether something failed."""
    click.echo(status_module.tables(recording))
    for line in more:
        _say(line, err=False)
    click.echo()
    for line in status_module.advice(recording):
        _say(f"note: {line}", err=False)
    click.echo()
    return _FAILED if status_module.failures(recording) else 0


def _skipped(recording: Recording) -> dict[str, str]:
    return dict(recording.header.settings.get("skipped", {}))


def _short(skipped: Iterable[str]) -> int:
    """Return the exit status of what was skipped; the peer's second build need not be there."""
    return _SKIPPED if any(not one.startswith(f"{PEER_FROM_SOURCE} ") for one in skipped) else 0


def _worst(outcomes: set[int]) -> int:
    """Return the exit status of all: what failed counts more than what was skipped."""
    return _FAILED if _FAILED in outcomes else max(outcomes, default=0)


def _installation(text: str) -> tuple[str, Installed]:
    name, equals, python = text.partition("=")
    if not (equals and name.isidentifier() and python) or name in ("ours", "spead2", "ceiling"):
        raise click.UsageError(f"--beside is {text!r}: it must be like old=/path/to/bin/python")
    return name, Installed(*find_installation(python))


def _say_what_is_planned(sweep: Sweep, plan: Plan, path: Path) -> int:
    """Say what is to be done, and what cannot be; return what of that the exit status has."""
    total = len(plan.skipped) + len(plan.cases)
    for reason, n in Counter(plan.skipped.values()).items():
        _say(f"{n} of {total} cases of {plan.sweep} are skipped: {reason}")
    warms_up = " and a warm-up" * any(observer.warms_up for observer in plan.observers)
    wanted = f"{len(plan.cases)} cases, {plan.rounds} rounds{warms_up}"
    click.echo(f"{sweep.name} ({sweep.about}): {wanted}, to {path}")
    if not plan.cases:
        _say(f"{sweep.name}: none of its cases can run here")
    return _short(plan.skipped)


def _read(path: Path) -> Recording | None:
    try:
        return read(path, unfinished=True)
    except (OSError, RecordError):
        return None


def _say(line: str, *, err: bool = True) -> None:
    click.echo(plain(line), err=err)


# ---- Reading records ----


@cli.command()
@click.argument("records", nargs=-1, type=_FILE)
def status(records: tuple[Path, ...]) -> int:
    """Say what RECORDS hold, how far they have come, and how certain their numbers are.

    Without any, it takes those of results/bench. The exit status is 1 where a case failed or
    a sample is missing, 3 where cases were skipped.

    Example: python -m bench status bench/results/heap-sizes.jsonl
    """
    paths = records or tuple(sorted(RESULTS.glob("*.jsonl")))
    if not paths:
        raise RecordError(f"there are no records in {RESULTS}: python -m bench run makes them")
    outcomes = set()
    for path in paths:
        recording = read(path, unfinished=True)
        missing, skipped = _missing(recording), _skipped(recording)
        what = f"{recording.header.experiment}, {_completeness(recording, missing)}"
        _say(f"{path}: {what}", err=False)
        reasons = [f"skipped: {reason}" for reason in sorted(set(skipped.values()))]
        outcomes |= {_show(settled(recording), reasons), _short(skipped)}
        outcomes.add(_FAILED if missing else 0)
    return _worst(outcomes)


def _missing(recording: Recording) -> int:
    """Count the samples of a recording's sweep that it does not hold."""
    settings = recording.header.settings
    try:
        sweep, size = find_sweep(recording.header.experiment), SIZES[settings["size"]]
        plan = plan_of(sweep, size, settings["rounds"])
    except (ValueError, KeyError):
        return 0
    without = {PEER_FROM_SOURCE} - {sample.implementation for sample in recording.samples}
    names = {case.name for case in plan.cases if case.implementation not in without}
    names -= _skipped(recording).keys()
    return sum(step.case.name in names for step in left(plan.steps(), recording))


def _completeness(recording: Recording, missing: int) -> str:
    size = recording.header.settings.get("size")
    taken = f"{len(recording.standing)} samples" + (f" of {size} size" if size else "")
    if recording.superseded:
        taken += f", besides {len(recording.superseded)} that failed and were repeated"
    if not missing:
        return f"{taken}, complete"
    return f"{taken}, {missing} missing: the command that began it goes on with it"


@cli.command()
@click.argument("sweeps", nargs=-1, type=parsed(find_sweep))
@click.option("-i", "--input", "source", type=_FOLDER, default=RESULTS, show_default=True,
              help="Folder with the records.")  # fmt: skip
@click.option("-o", "--output", type=_FOLDER, default=Path("results", "figures"),
              show_default=True, help="Folder for the pictures.")  # fmt: skip
def plot(sweeps: tuple[Sweep, ...], source: Path, output: Path) -> int:
    """Draw the pictures of records.

    Example: python -m bench plot -i bench/results -o docs/figures
    """
    if not source.is_dir():
        raise RecordError(f"there is no folder {source}: python -m bench run makes one")
    return _draw(source, output, *(sweep.name for sweep in sweeps))


def _draw(source: Path, output: Path, *names: str) -> int:
    drawn, problems = figures.draw(source, output, names)
    for path in drawn:
        click.echo(path)
    for problem in problems:
        _say(problem)
    if not drawn and not problems:
        raise RecordError(f"there are no records to draw in {source}")
    return _FAILED if problems else 0


cli.add_command(compare.command)


def main() -> None:
    as_process(cli, "python -m bench")
