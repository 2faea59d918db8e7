# SPDX-License-Identifier: BSD-3-Clause
"""Numbers that were measured, in prose: roles that look them up in the committed records.

Each is a button that shows how sure the number is, and a link to the machine it was measured on.
One that names no record, no sample or several points is an error. For instance, in Markdown:

    {rate}`tut-8 c tut_8_send_reuse_memory 64MiB`           a median rate
    {width}`tut-8 c tut_8_send_reuse_memory 64MiB`          how wide its interval is, in parts of it
    {gain}`tut-8 c 64MiB tut_8_send_heap_size -> tut_8_send_reuse_memory`   how many times as fast
    {of-ceiling}`heap-sizes 8KiB "two threads" -> c tut_8_send_reuse_memory`   its rate, a share of
                                                            what that bare loop reaches
    {per-heap}`page_faults tut-8 c tut_8_send_heap_size 64MiB`      a median count for each heap
    {total}`received_heaps receive-pool c tut_9_recv_memory_pool "link of 4 Gb/s"`   a count, of all
                                                            rounds together
    {time-per-heap}`tut-8 c tut_8_send_heap_size 64MiB`     a median time for each heap
    {took}`preparing tut-5 tut_4_send_constant`             a median time in a timeline:
                                                            preparing, or sending
    {at-best}`tut-5 tut_4_send_constant`                    what overlapping could gain by the
                                                            formula of chapter 5
    {per-gb}`cpu tut-8 c tut_8_send_heap_size 64MiB`        CPU seconds for 10^9 bytes of payload
    {share}`preparing tut-5 tut_4_send_perf random`         a share of a timeline's time:
                                                            preparing, waiting, rest, or sending
    {busy}`network heap-sizes c tut_13_send_hot 8KiB`       in what share of the time the stream's
                                                            thread worked; or the program's own:
                                                            looking for work is no work
    {spacing}`silence spacing tut_4_send_perf random`       a heap's longest silence between its
                                                            messages, or its burst
    {lossless}`c tut_7_recv_power 1MiB p9000`       a receiver's highest payload rate without loss
                                                    and its interval, of receive-lossless
    {late}`tut-17 c tut_17_recv_hot "1 GB/s, one by one"`   a median time from a heap's last packet
                                                    until its result is there
    {fact}`cpu`, {fact}`cpu tut-8`       a fact of the machine, or of that of a record

What chooses samples is the name of a record and any of: an implementation (``ours``, which is
meant where none is named, ``spead2``, ``spead2-source``, ``ceiling``), a language, a program, a
size of heaps (``8KiB``), a size of packets (``p9000``), ``random`` or ``fill`` samples (a fill
where none is named), and a variant in quotes (``variant=fill`` where its name would be another
word's). To the right of an arrow stands only what is different there.
"""

import dataclasses
import functools
import html
import re
import shlex
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util.docutils import SphinxRole

from bench.figures import RESULTS
from bench.receivers import RECEIVERS
from spead_tutorial.chapters.catalogue import LANGUAGES
from spead_tutorial.measure import analysis, search, stats
from spead_tutorial.measure.records import OURS, Recording, Sample, Spacing, Timeline, read
from spead_tutorial.results import units
from spead_tutorial.results.units import number, percent, thousands

#: Where the machine of all records is described, and where others are.
_WHERE, _ELSEWHERE = ("results", "the-reference-machine"), ("machines", "machines")
_IMPLEMENTATIONS = (OURS, "spead2", "spead2-source", "ceiling")
_UNITS = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20}
#: Whose work a program's threads do.
_THREADS = {"program": analysis.program_busy, "network": analysis.others_busy}
#: What a heap's time in a timeline goes to.
_PARTS = {"preparing": analysis.preparing, "sending": analysis.sending}
_US, _KIB = "\N{NO-BREAK SPACE}µs", "\N{NO-BREAK SPACE}KiB"
#: How evenly a heap's messages leave, in which unit.
_EVEN: dict[str, tuple[Callable[[Spacing], float], str]] = {
    "silence": (lambda run: analysis.silence(run) / 1e3, _US),
    "burst": (lambda run: analysis.burst(run) / 1024, _KIB),
}
#: What the highest rates without loss are in.
_LOSSLESS = "receive-lossless"
Run = TypeVar("Run", Sample, Timeline, Spacing)
MACHINE = "ladder"  # of the reference machine
_OF_A_CORE = "L1d", "L2"


class UnknownError(ValueError):
    """What a role asks for has not been measured; the text says what there is."""


# ---- Looking it up ----


@functools.cache
def recording(name: str) -> Recording:
    """Read a record by the name of its sweep: of a search, what it found."""
    path = _path(name)
    if not path.is_file():
        there = ", ".join(sorted(record.stem for record in RESULTS.glob("*.jsonl")))
        raise UnknownError(f"there is no record {name!r}: there are {there}")
    return search.settled(read(path))


@functools.cache
def _points(name: str) -> dict[object, list[Sample]]:
    """Return a record's samples by what a choice can tell apart; those to warm up are left out."""
    found: dict[object, list[Sample]] = {}
    for one in recording(name).samples:
        if not one.warm_up:
            what = one.case, *(getattr(one, name) for name in _TOLD_APART)
            found.setdefault(what, []).append(one)
    return found


def _path(name: str) -> Path:
    return RESULTS / f"{name}.jsonl"


@dataclasses.dataclass(frozen=True, slots=True)
class Choice:
    """Which samples a role is about; what is None may be anything, as long as it is one thing."""

    record: str
    implementation: str = OURS
    language: str | None = None
    program: str | None = None
    heap_size: int | None = None
    packet_size: int | None = None
    random: bool = False
    variant: str = ""

    def changed(self, words: Iterable[str]) -> "Choice":
        """Return it with what these words say."""
        changed = dataclasses.replace(self, **dict(_chosen(word) for word in words))
        # The bare loops are one program, whatever they are compared with.
        return dataclasses.replace(changed, program=None) if changed.bare else changed

    @property
    def bare(self) -> bool:
        """Whether it is the bare loops that are meant."""
        return self.implementation == "ceiling"

    def candidates(self) -> list[Sample]:
        """Return the samples of all points that it may mean."""
        points_there = _points(self.record).values()
        return [sample for point in points_there if self._means(point[0]) for sample in point]

    def samples(self) -> list[Sample]:
        """Return the samples of the one point it means."""
        return _of_one_case(self, self.candidates(), recording(self.record).samples)

    def _means(self, sample: Sample) -> bool:
        wanted = [
            (name, value)
            for name in _TOLD_APART
            if (value := getattr(self, name)) is not None and value != ""
        ]
        # A plain program is meant, unless a variant is named; the bare loops are all variants.
        plain = self.variant or self.bare or not sample.variant
        return bool(plain) and all(getattr(sample, name) == value for name, value in wanted)


#: What a choice names, as a sample has it.
_TOLD_APART = [field.name for field in dataclasses.fields(Choice) if field.name != "record"]


def _chosen(word: str) -> tuple[str, Any]:
    """Return which part of a choice a word says, and what."""
    size = re.fullmatch(r"(\d+)(B|KiB|MiB)", word)
    if size:
        return "heap_size", int(size[1]) * _UNITS[size[2]]
    if re.fullmatch(r"p\d+", word):
        return "packet_size", int(word[1:])
    if word in _IMPLEMENTATIONS:
        return "implementation", word
    if word in LANGUAGES:
        return "language", word
    if word.startswith("variant="):
        return "variant", word.removeprefix("variant=")
    if word in ("random", "fill"):
        return "random", word == "random"
    program = word.startswith("tut_") or word in RECEIVERS
    return ("program" if program else "variant"), word


def choices(text: str) -> tuple[Choice, ...]:
    """Return what a role's text chooses: one, or two with an arrow between them."""
    left, arrow, right = text.partition("->")
    record, *words = shlex.split(left) or [""]
    first = Choice(record).changed(words)
    return (first, first.changed(shlex.split(right))) if arrow else (first,)


def _one(text: str) -> Choice:
    """Return what a role's text chooses that compares nothing."""
    first, *more = choices(text)
    if more:
        raise UnknownError(f"{text!r} compares, where one thing is meant")
    return first


def _of_program(choice: Choice, of: Sequence[Run]) -> list[Run]:
    """Return the runs of the one program that a choice means."""
    wanted = (choice.program, choice.random, choice.variant)
    found = [run for run in of if (run.program, run.random, run.variant) == wanted]
    found = [run for run in found if choice.language in (None, run.language)]
    return _of_one_case(choice, found, of)


def _of_one_case(choice: Choice, found: list[Run], of: Iterable[Run]) -> list[Run]:
    """Return what was found, if it is all of one case."""
    cases = sorted(set(map(_case, found)))
    if len(cases) != 1:
        what = "several points" if cases else "no sample"
        there = cases or sorted(set(map(_case, of)))
        raise UnknownError(f"{choice} is {what} of {choice.record}: {'; '.join(there[:40])}")
    return found


def _case(run: Sample | Timeline | Spacing) -> str:
    return getattr(run, "case", f"{run.language} {run.program}")


# ---- Saying it ----


@dataclasses.dataclass(frozen=True, slots=True)
class Said:
    """A number as a page has it, and how sure it is."""

    text: str
    detail: str
    record: str


def _say(
    estimate: stats.Estimate, write: Callable[[float], str], record: str, unit: str = ""
) -> Said:
    """Say a median, and its interval behind it."""
    text = f"{write(estimate.median)}{unit}"
    return Said(text, _interval(estimate, write, unit), record)


def _interval(estimate: stats.Estimate, write: Callable[[float], str], unit: str = "") -> str:
    ends = f"{write(estimate.low)} to {write(estimate.high)}{unit}"
    return f"median of {estimate.n} rounds, {estimate.spread} {ends}"


def _estimate(value: Callable[[Sample], float | None], choice: Choice) -> stats.Estimate:
    values = [amount for sample in choice.samples() if (amount := value(sample)) is not None]
    if not values:
        raise UnknownError(f"{choice}: no sample has that")
    return stats.median(values)


def _field(text: str, there: Iterable[str]) -> tuple[str, Choice]:
    """Return the first word of a role's text, which has to be one of those, and its choice."""
    field, _, rest = text.partition(" ")
    if field not in there:
        raise UnknownError(f"there is no {field!r}: there are {', '.join(there)}")
    return field, _one(rest)


def rate(text: str) -> Said:
    choice = _one(text)
    return _say(_rate_of(choice), megabytes, choice.record, " MB/s")


def _rate_of(choice: Choice) -> stats.Estimate:
    return _estimate(lambda sample: sample.rate, choice)


def megabytes(rate: float) -> str:
    return thousands(_rounded(rate / 1e6)) if rate >= 1e8 else number(rate / 1e6)


def lossless(text: str) -> Said:
    choice = _one(f"{_LOSSLESS} {text}")
    samples = choice.samples()
    if any(sample.failure is not None for sample in samples):
        raise UnknownError(f"{choice}: in some round there was no rate without loss")
    estimate = _rate_of(choice)
    said = _say(estimate, megabytes, choice.record, " MB/s")
    ends = f"{megabytes(estimate.low)} to {megabytes(estimate.high)}"
    text = f"{'at least ' * search.is_bound(samples)}{said.text} ({ends})"
    return dataclasses.replace(said, text=text)


def width(text: str) -> Said:
    estimate = _rate_of(_one(text))
    said = f"{number((estimate.high - estimate.low) / estimate.median * 100)} %"
    return dataclasses.replace(rate(text), text=said)


def gain_estimate(text: str) -> stats.Estimate:
    """Return how many times as fast the second choice is as the first, of ratios within rounds."""
    both = choices(text)
    if len(both) != 2:
        raise UnknownError(f"{text!r} compares nothing: it needs BEFORE -> AFTER")
    if both[0] == both[1]:
        raise UnknownError(f"{text!r} compares a thing with itself")
    return stats.gain(*(analysis.rates_by_round(one.samples()) for one in both))


def gain(text: str) -> Said:
    return _say(gain_estimate(text), _factor, choices(text)[0].record)


def of_ceiling(text: str) -> Said:
    loop, _, program = text.partition("->")
    estimate = gain_estimate(f"{loop} ceiling -> ours variant= {program}")
    return _say(estimate, percent, loop.split()[0])


def per_heap(text: str) -> Said:
    field, _, rest = text.partition(" ")
    choice = _one(rest)

    def value(sample: Sample) -> float | None:
        count = _count(sample, field)
        return None if count is None else count / sample.heaps

    estimate = _estimate(value, choice)
    return Said(number(estimate.median), _interval(estimate, number, " a heap"), choice.record)


def total(text: str) -> Said:
    field, _, rest = text.partition(" ")
    choice = _one(rest)
    counts = [_count(sample, field) for sample in choice.samples()]
    known = [count for count in counts if count is not None]
    if len(known) != len(counts):
        raise UnknownError(f"{choice}: not every sample has a count {field!r}")
    return Said(thousands(sum(known)), f"of {len(known)} rounds together", choice.record)


def _count(sample: Sample, field: str) -> int | None:
    count = getattr(sample, field, field)
    if not isinstance(count, int | None):
        raise UnknownError(f"a sample has no count {field!r}")
    return count


def time_per_heap(text: str) -> Said:
    choice = _one(text)
    micros = _estimate(lambda one: one.heap_size / one.rate * 1e6 if one.rate else None, choice)
    return _say(micros, _rounded_text, choice.record, _US)


def late(text: str) -> Said:
    choice = _one(text)

    def value(sample: Sample) -> float | None:
        ns = _count(sample, "lateness_ns")
        return None if ns is None else ns / 1e3

    return _say(_estimate(value, choice), _rounded_text, choice.record, _US)


def per_gb(text: str) -> Said:
    _, choice = _field(text, ("cpu",))
    return _say(_estimate(analysis.cpu_s_per_gb, choice), number, choice.record, " s")


def busy(text: str) -> Said:
    thread, choice = _field(text, _THREADS)
    return _say(_estimate(_THREADS[thread], choice), percent, choice.record)


def took(text: str) -> Said:
    field, choice = _field(text, _PARTS)
    estimate = stats.median(_microseconds(choice, field))
    said = f"median of {estimate.n} heaps of one short run"
    return Said(_rounded_text(estimate.median) + _US, said, choice.record)


def at_best(text: str) -> Said:
    choice = _one(text)
    times = [stats.median(_microseconds(choice, field)).median for field in _PARTS]
    return Said(_factor(sum(times) / max(times)), "from times of one short run", choice.record)


def _microseconds(choice: Choice, field: str) -> list[float]:
    """Return how long each heap that counts took."""
    run = _timeline(choice)
    steady = _PARTS[field](run)[analysis.first_steady(run) :]
    return [(end - begin) / 1e3 for begin, end in steady]


def share(text: str) -> Said:
    field, choice = _field(text, [part.name for part in dataclasses.fields(analysis.Shares)])
    shares = analysis.shares(_timeline(choice))
    return Said(percent(getattr(shares, field)), "of one short run", choice.record)


def _timeline(choice: Choice) -> Timeline:
    return _of_program(choice, recording(choice.record).timelines)[0]


def spacing(text: str) -> Said:
    field, choice = _field(text, _EVEN)
    value, unit = _EVEN[field]
    runs = [run for run in recording(choice.record).spacings if run.failure is None]
    estimate = stats.median([value(run) for run in _of_program(choice, runs)])
    return _say(estimate, _rounded_text, choice.record, unit)


def fact(text: str) -> Said:
    """Say a fact of the reference machine, or of that of the record which is named after it."""
    name, _, record = text.partition(" ")
    facts = machine_facts(recording(record or MACHINE))
    if name not in facts:
        raise UnknownError(f"there is no fact {name!r}: there are {', '.join(facts)}")
    whose = f"the machine of {record}" if record else "the reference machine"
    return Said(facts[name], whose, record or MACHINE)


def machine_facts(found: Recording) -> dict[str, str]:
    """Return what a record says of its machine, in words."""
    header = found.header
    machine, lab, versions = header.machine, header.lab, header.versions
    sizes = (machine["caches_bytes"] or {}).items()  # not every system says them
    caches = {name: units.size(n_bytes) for name, n_bytes in sizes}
    return {
        "cpu": str(machine["cpu"]),
        "cores": str(machine["usable_cores"]),
        **caches,
        "caches": " and ".join(f"{caches[one]} of {one}" for one in _OF_A_CORE if one in caches),
        "memory": f"{machine['memory_bytes'] / (1 << 30):.0f} GiB",
        "kernel": f"Linux {machine['kernel']}",
        "virtualisation": str(machine["virtualisation"] or "none"),
        "governor": str(machine["governor"] or "unknown"),
        "lab": str(lab["kind"]),
        "mtu": str(lab["mtu"]),
        "python": str(versions["python"]),
        "numpy": str(versions["numpy"]),
        "compiler": str(versions["compiler"]),
        "spead2": str(versions.get("spead2") or "none"),
        "rounds": str(found.rounds),
        "revision": str(found.header.revision),
    }


def named(machine: dict[str, str]) -> str:
    """Return what a machine is, by its facts."""
    caches = f", each with {machine['caches']}" if machine["caches"] else ""
    return f"{machine['cpu']}, {machine['cores']} cores{caches}"


def is_reference(record: str) -> bool:
    """Return whether a record is of the reference machine."""
    mine, its = (machine_facts(recording(name)) for name in (MACHINE, record))
    return all(its[name] == mine[name] for name in ("cpu", "cores", "caches", "memory"))


def _described(record: str) -> tuple[str, str] | None:
    """Return on which page and where a record's machine is described; None where nowhere."""
    if _path(record).parent != RESULTS:
        return _ELSEWHERE
    return _WHERE if is_reference(record) else None


def _rounded(value: float) -> float:
    """Return a number with three digits that say something: none is surer than that."""
    return float(f"{value:.3g}")


def _rounded_text(value: float) -> str:
    return thousands(_rounded(value)) if value >= 100 else f"{value:.3g}"


def _factor(value: float) -> str:
    return f"{value:#.3g}".rstrip(".")


_ROLES = (
    *(at_best, busy, fact, gain, late, lossless, of_ceiling, per_gb, per_heap, rate, share),
    *(spacing, time_per_heap, took, total, width),
)
#: What each role says; its name is the function's.
SAYS: dict[str, Callable[[str], Said]] = {say.__name__.replace("_", "-"): say for say in _ROLES}


# ---- As roles ----


class Pressable(nodes.inline):
    """A number on a page, which shows more when it is pressed."""


def pressable(env: BuildEnvironment, detail: str, more: str = "") -> tuple[str, str]:
    """Return the HTML around a number for it to be pressed, which needs no script."""
    name, said = f"about-{env.new_serialno('measured')}", html.escape(detail)
    button = f'<button type="button" class="measured" popovertarget="{name}" title="{said}">'
    return button, f'</button><span popover class="measured" id="{name}">{said}{more}</span>'


class Measured(SphinxRole):
    """A role that says a number."""

    def __init__(self, say: Callable[[str], Said]) -> None:
        super().__init__()
        self._say = say

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        try:
            said = self._say(self.text)
        except ValueError as error:
            message = self.inliner.reporter.error(f"{self.name}: {error}", line=self.lineno)
            return [nodes.problematic(self.rawtext, self.rawtext)], [message]
        self.env.note_dependency(str(_path(said.record)))
        return [self._number(said)], []

    def _number(self, said: Said) -> nodes.Node:
        machine = machine_facts(recording(said.record))
        where = html.escape(", ".join((named(machine), machine["kernel"], machine["lab"])))
        if (place := _described(said.record)) is not None:
            uri = self.env.app.builder.get_relative_uri(self.env.docname, place[0])
            where = f'<a class="reference internal" href="{uri}#{place[1]}">{where}</a>'
        more = f"; {where}, MTU {machine['mtu']}, revision {machine['revision']}"
        return Pressable("", said.text, around=pressable(self.env, said.detail, more))


def _begin(writer: Any, node: nodes.Element) -> None:
    writer.body.append(node["around"][0])


def _end(writer: Any, node: nodes.Element) -> None:
    writer.body.append(node["around"][1])


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_node(Pressable, html=(_begin, _end))
    for name, say in SAYS.items():
        app.add_role(name, Measured(say))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
