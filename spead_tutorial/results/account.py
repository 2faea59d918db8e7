# SPDX-License-Identifier: BSD-3-Clause
"""What became of all that every sender sent to every receiver: a matrix, and who lost what."""

import dataclasses
import operator
import signal
from collections.abc import Iterator, Sequence
from typing import Any, Self, TypeGuard

from spead_tutorial.chapters.catalogue import NAMES
from spead_tutorial.ledger import Gap, some
from spead_tutorial.measure.corner_turn import Ended, Look, Lost, Measured
from spead_tutorial.measure.programs import ProgramError
from spead_tutorial.measure.records import RecordError, Recording, Turn
from spead_tutorial.measure.search import Tried
from spead_tutorial.results.tables import Column, Table
from spead_tutorial.results.units import size

#: Up to so many receivers have a column each; of more, only the pairs that lost most are listed.
_MOST_COLUMNS, _WORST, _MOST_NAMES = 10, 10, 4
_LOOK_S = 0.1  # how often receivers look whether something has come
_MOST_MERGED = 128  # packets that the kernel puts into one message at most


@dataclasses.dataclass(frozen=True, slots=True)
class Pair:
    """A sender and a receiver; None stands for what a program did not live to say."""

    sent: int | None  #: Packets, as the sender counted them.
    arrived: int | None  #: Packets that the receiver took from its socket.
    dropped: int = 0  #: Messages that the receiver's socket had no room for.
    late: int = 0  #: Heaps that came too late for their chunk.
    incomplete: int = 0  #: Heaps that lacked packets when they were given up.

    @property
    def missing(self) -> int | None:
        if self.sent is None or self.arrived is None:
            return None
        return self.sent - self.arrived


class Account:
    """A corner turn's account."""

    def __init__(self, measured: Measured) -> None:
        self.measured = measured
        asked = measured.asked  # of whom a program speaks, also where they were never started
        sent = [_of(one, "destinations", asked.receivers) for one in measured.senders]
        came = [_of(one, "senders", asked.senders) for one in measured.receivers]
        self.pairs = [
            [_pair(to[j], its[i]) for j, its in enumerate(came)] for i, to in enumerate(sent)
        ]
        self.columns = [list(column) for column in zip(*self.pairs, strict=True)]

    @classmethod
    def of(cls, recording: Recording) -> Self:
        """Make that of a record."""
        for turn in recording.those(Turn):
            try:
                return cls(turn.measured)
            except ProgramError as error:
                raise RecordError(str(error)) from None
        raise RecordError(f"the record is of {recording.header.experiment}, not of an array")

    @property
    def is_whole(self) -> bool:
        """Whether every packet of every pair arrived, and that is known."""
        lost = any(one.missing != 0 for row in self.pairs for one in row)
        return bool(self.pairs) and not lost and not self.failures

    @property
    def failures(self) -> list[str]:
        """What went wrong, a line each; what many programs say alike has one."""
        alike: dict[str, list[str]] = {}
        for one in (*self.measured.receivers, *self.measured.senders):
            if one.failure and not (one.status == -signal.SIGINT and self._was_cut_short):
                alike.setdefault(one.failure, []).append(one.name)
        return [*self.measured.trouble, *(f"{_names(who)}: {what}" for what, who in alike.items())]

    @property
    def _was_cut_short(self) -> bool:
        """Whether programs were interrupted by the tool itself."""
        return self.measured.interrupted or bool(self.measured.trouble)

    @property
    def verdict(self) -> str:
        """What came out, in one line."""
        known = [one for row in self.pairs for one in row if one.missing is not None]
        sent = sum(one.sent or 0 for one in known)
        lost = [one.missing for one in known if one.missing and one.missing > 0]
        more = -sum(min(one.missing or 0, 0) for one in known)
        bad, missing = len(lost), sum(lost)
        unknown = sum(map(len, self.pairs)) - len(known)
        if not known:
            return "Nothing is known of any pair."
        text = f"{some(len(known), 'pair')}, {some(sent, 'packet')}: all arrived"
        if more:
            text = f"{some(more, 'packet')} more arrived than were sent: something else sends there"
        if bad:
            share = _percent(missing / max(1, sent))
            text = f"{missing} of {some(sent, 'packet')} are missing ({share}),"
            text += f" in {bad} of {some(len(known), 'pair')}"
        return f"{text}; of {some(unknown, 'pair')} nothing is known" if unknown else f"{text}."

    @property
    def shares(self) -> list[list[float | None]]:
        """Of what each sender sent to each receiver, which share is missing."""
        return [
            [None if one.missing is None else one.missing / max(1, one.sent or 0) for one in row]
            for row in self.pairs
        ]

    @property
    def about(self) -> str:
        """What was tried, in one line."""
        asked = self.measured.asked
        how = f"multicast to {asked.groups}" if asked.groups else "unicast"
        return (
            f"{len(self.measured.machines)} machines, {how}, {asked.rate:g} MB/s of each sender for"
            f" {asked.seconds:g} s, heaps of {size(asked.heap_size)}, packets of"
            f" {asked.packet_size} bytes, programs in {NAMES.get(asked.language, asked.language)}"
        )

    def lines(self) -> Iterator[str]:
        """Write it."""
        yield self.verdict
        table = self.table
        for heading, lines in (
            (f"{self.heading}:", str(table).split("\n") if table.rows else []),
            ("", list(self.times())),
            ("Where packets were lost:", list(self.places())),
        ):
            if lines:
                yield from ("", *filter(None, [heading]), *lines)

    # ---- The matrix ----

    @property
    def heading(self) -> str:
        """What the table has."""
        if self._has_columns:
            return "Packets that are missing, and what was sent and received"
        lossy, n = len(self._lossy), sum(map(len, self.pairs))
        return f"{lossy} of {n} pairs lost packets, most of all"

    @property
    def table(self) -> Table[list[str]]:
        """The matrix; where it is too wide, the pairs that lost most."""
        heads, *rows = self._matrix() if self._has_columns else self._worst()
        columns: list[Column[list[str]]] = [
            Column(head, operator.itemgetter(k), is_words=not k, is_cut=not k)
            for k, head in enumerate(heads)
        ]
        return Table(columns[:1], columns[1:], rows)

    @property
    def _has_columns(self) -> bool:
        return len(self.columns) <= _MOST_COLUMNS

    def _matrix(self) -> Iterator[list[str]]:
        yield ["", *(f"receiver {j}" for j in range(len(self.columns))), "all", "sent"]
        if not self.pairs:
            return
        for i, row in enumerate(self.pairs):
            sent = f"{_count([one.sent for one in row])}, {_rate(self.measured.senders[i])}"
            missing = [one.missing for one in row]
            yield [f"sender {i}", *(_count([one]) for one in missing), _count(missing), sent]
        sums = [_count([one.missing for one in column]) for column in self.columns]
        yield ["all", *sums, _count([one.missing for row in self.pairs for one in row]), ""]
        came = [_count([one.arrived for one in column]) for column in self.columns]
        yield ["received", *came, "", ""]
        rates = list(map(_rate, self.measured.receivers))
        if any(one != "?" for one in rates):  # a short run has no more than one chunk to time
            yield ["rate", *rates, "", ""]

    @property
    def _lossy(self) -> list[tuple[int, int, int]]:
        """What each pair lost that lost something, the most first."""
        found = [(one.missing or 0, i, j) for i, row in enumerate(self.pairs)
                 for j, one in enumerate(row) if one.missing != 0]  # fmt: skip
        return sorted(found, reverse=True)

    def _worst(self) -> Iterator[list[str]]:
        yield ["", "missing", "sent"]
        for _, i, j in self._lossy[:_WORST]:
            pair = self.pairs[i][j]
            yield [f"sender {i} to receiver {j}", _count([pair.missing]), _count([pair.sent])]

    @property
    def offered(self) -> float:
        """The MB/s that the slowest sender has sent; 0 where that is not known."""
        its = [(number(one, "spead_bytes"), number(one, "elapsed_ns"))
               for one in self.measured.senders]  # fmt: skip
        return min((1e3 * n_bytes / max(1, ns) for n_bytes, ns in its), default=0.0)

    def times(self) -> Iterator[str]:
        """Say when packets were sent, when they came, and how."""
        asked, sent = self.measured.asked.rate, self.offered
        if sent and Tried(asked, sent, False).fell_short:
            yield f"A sender sent {sent:.4g} MB/s, not {asked:g}: its core or link passes no more."
        joined = [one.joined_s for one in self.measured.receivers if one.joined_s is not None]
        if joined:
            yield f"From its start, a receiver took up to {max(joined):.2f} s to join."
        late, incomplete = (sum(getattr(one, what) for row in self.pairs for one in row)
                            for what in ("late", "incomplete"))  # fmt: skip
        if late or incomplete:
            yield (f"Heaps: {incomplete} were incomplete; {late} came too late, as their sender"
                   " was behind the others.")  # fmt: skip
        waits = [number(one, "longest_chunk_wait_ns") for one in self.measured.receivers]
        if longest := max(waits, default=0):
            yield f"A receiver waited up to {longest / 1e6:.1f} ms for its program."
        yield from self._on_the_way()

    def _on_the_way(self) -> Iterator[str]:
        clocks = {self.measured.machines[one.machine].clock for one in self.measured.receivers}
        said = []
        if (skew := self.skew_s) is not None:
            among = f" on machines of one clock ({len(clocks)} clocks)" if len(clocks) > 1 else ""
            said.append(f"First packets came to receivers{among} within {skew + _LOOK_S:.1f} s.")
        elif len(clocks) > 1:
            said.append("Each receiver has a clock of its own: first packets do not compare.")
        if (pause := self.longest_pause_s) >= 2 * _LOOK_S:
            said.append(f"A receiver got nothing for {pause:.1f} s, and then more.")
        if said:
            yield " ".join(said)
        if n := self.out_of_order:
            yield f"{some(n, 'packet')} overtook others of their heaps."

    @property
    def skew_s(self) -> float | None:
        """How far apart receivers saw their first packets, where some share a clock."""
        by_clock: dict[str, list[int]] = {}
        for one in self.measured.receivers:
            if first := number(one, "first_packets_ns"):
                by_clock.setdefault(self.measured.machines[one.machine].clock, []).append(first)
        skews = [(max(its) - min(its)) / 1e9 for its in by_clock.values() if len(its) > 1]
        return max(skews, default=None)

    @property
    def longest_pause_s(self) -> float:
        """How long a receiver got nothing between its first packets and its last."""
        return max((number(one, "longest_pause_ns") / 1e9 for one in self.measured.receivers
                    if (one.said or {}).get("ended") == "stop"), default=0.0)  # fmt: skip

    @property
    def out_of_order(self) -> int:
        """How many packets came before others of their heap, to receivers that miss none.

        Where packets are missing, those behind them count as such, too.
        """
        whole = (all(one.missing == 0 for one in column) for column in self.columns)
        return sum(number(one, "packets_after_loss")
                   for one, is_whole in zip(self.measured.receivers, whole, strict=False)
                   if is_whole)  # fmt: skip

    # ---- Who lost what ----

    def places(self) -> Iterator[str]:
        """Say of each machine that lost something what counted it."""
        for _, line, doubt in self._losses():
            yield f"  {line}"
            if doubt:
                yield f"    {doubt}"
        if lost := self._at_senders:
            yield f"  before they left their machines: {lost}, in devices and their queues"

    @property
    def most(self) -> str:
        """For which machine most was lost, and where."""
        _, line, _ = max(self._losses(), key=operator.itemgetter(0), default=(0, "", None))
        return line and f"Most for {line}"

    def _losses(self) -> Iterator[tuple[int, str, str | None]]:
        """Yield what each machine is missing, in words, too, and what is in doubt of them."""
        for m, machine in enumerate(self.measured.machines):
            gap, found = self._of_machine(m)
            if (missing := gap.came - gap.went_on) > 0:
                who = ", ".join(map(str, self._receivers_of(m)))
                said = " + ".join(found) or "no counter of ours has any"
                doubt = gap.difference and (
                    f"that does not add up: {gap.difference}"
                    if found
                    else "they cannot be placed: ask the switches on the way"
                )
                yield missing, f"{machine.name} (receiver {who}): {missing} missing = {said}", doubt

    @property
    def _at_senders(self) -> int:
        return sum(one.tx_dropped + one.queue_dropped for one in self.measured.looks if one)

    def _receivers_of(self, machine: int) -> list[int]:
        return [j for j, one in enumerate(self.measured.receivers) if one.machine == machine]

    def _of_machine(self, m: int) -> tuple[Gap, list[str]]:
        """Hold what was sent to a machine against what was read there, and what counters say."""
        columns = [self.columns[j] for j in self._receivers_of(m) if self.columns]
        pairs = [one for column in columns for one in column if one.missing is not None]
        look = self.measured.looks[m] or Look(0, 0, 0, 0, 0, 0)
        switch = self.measured.switch[m] if self.measured.switch else Lost()
        sockets = sum(one.dropped for one in pairs)
        places = (
            (switch.full, "by the switch, whose port to it was full"),
            (switch.chance, "by the switch, as was asked for"),
            (look.rx_dropped, "by its device"),
            (look.unclaimed, "at a port without a socket"),
            (sockets, "by its sockets, which were full"),
        )
        exact, merged = sum(count for count, _ in places), sockets * (_MOST_MERGED - 1)
        gap = Gap(
            f"on the way to {self.measured.machines[m].name}",
            sum(one.sent or 0 for one in pairs),
            sum(one.arrived or 0 for one in pairs),
            exact,
            exact + self._at_senders + (merged if self._may_merge(m) else 0),
        )
        return gap, [f"{count} {words}" for count, words in places if count]

    def _may_merge(self, m: int) -> bool:
        """Whether sockets there have had runs of packets in one message."""
        said = [self.measured.receivers[j] for j in self._receivers_of(m)]
        return any(
            number(one, "socket_messages") != number(one, "socket_datagrams") for one in said
        )

    def as_dict(self) -> dict[str, Any]:
        """Everything, for JSON."""
        pairs = [[dataclasses.asdict(one) | {"missing": one.missing} for one in row]
                 for row in self.pairs]  # fmt: skip
        return {"verdict": self.verdict, "whole": self.is_whole, "failures": self.failures,
                "places": [line.strip() for line in self.places()], "pairs": pairs,
                "skew_s": self.skew_s, "longest_pause_s": self.longest_pause_s,
                "out_of_order": self.out_of_order}  # fmt: skip


def _pair(to: dict[str, int], came: dict[str, int]) -> Pair:
    return Pair(
        to.get("packets"), came.get("packets"), came.get("dropped", 0), came.get("too_old", 0),
        came.get("incomplete", 0),
    )  # fmt: skip


def _names(who: list[str]) -> str:
    return ", ".join(who) if len(who) <= _MOST_NAMES else f"{who[0]} and {len(who) - 1} others"


def _of(ended: Ended, what: str, n: int) -> list[dict[str, int]]:
    """Return what a program said of each of its n partners; nothing where it did not live to.

    The program may be of another version, on a machine of somebody else's.
    """
    found = [{}] * n if ended.said is None else ended.said.get(what)
    its = found if isinstance(found, list) else []
    if len(its) != n or not all(isinstance(one, dict) for one in its):
        raise ProgramError(
            f"{ended.name} did not print a count for each of its {some(n, what[:-1])}: install the"
            " same version on all machines"
        )
    return [{name: x for name, x in one.items() if _is_count(x)} for one in its]


def number(ended: Ended, name: str) -> int:
    """Return what a program counted; 0 where it does not say it."""
    value = (ended.said or {}).get(name)
    return value if _is_count(value) else 0


def _is_count(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and 0 <= value < 1 << 63


def _rate(ended: Ended) -> str:
    """Write at what rate a program sent or received samples."""
    what = "payload_bytes" if "destinations" in (ended.said or {}) else "timed_bytes"
    n_bytes, elapsed_ns = number(ended, what), number(ended, "elapsed_ns")
    return f"{n_bytes / elapsed_ns * 1e3:.4g} MB/s" if n_bytes and elapsed_ns else "?"


def _count(counts: Sequence[int | None]) -> str:
    """Write a sum, of which something may not be known."""
    known = [one for one in counts if one is not None]
    return str(sum(known)) if len(known) == len(counts) else f"{sum(known)} + ?" if known else "?"


def _percent(share: float) -> str:
    return f"{share:.2%}" if share >= 1e-4 else f"{share:.1e}"
