# SPDX-License-Identifier: BSD-3-Clause
"""Corner turns of arrays that do not exist."""

from msgspec.structs import replace

from spead_tutorial.measure.corner_turn import Asked, Ended, Look, Machine, Measured
from spead_tutorial.measure.records import Recording, Turn
from spead_tutorial.results.account import Account
from support.records import HEADER

ASKED = Asked(senders=1, receivers=1, language="c", rate=1, seconds=1, heap_size=1, packet_size=1,
              ttl=1, groups=None, data_network=None)  # fmt: skip


def sender(i: int, *packets: int, machine: int = 0) -> Ended:
    to = [{"to": "", "heaps": 1, "packets": n, "bytes": n} for n in packets]
    said: dict[str, object] = {"destinations": to, "payload_bytes": 5000, "elapsed_ns": 1000}
    return Ended(f"sender {i}", machine, 0, said)


def receiver(j: int, *packets: int, dropped: int = 0, machine: int = 0) -> Ended:
    came = [{"packets": n, "dropped": dropped, "too_old": 0, "incomplete": 0} for n in packets]
    n = sum(packets)
    said: dict[str, object] = {"senders": came, "timed_bytes": 3000, "elapsed_ns": 1000}
    said |= {"socket_messages": n, "socket_datagrams": n}
    return Ended(f"receiver {j}", machine, 0, said, joined_s=0.5)


def account(senders: list[Ended], receivers: list[Ended], **more: object) -> Account:
    machines = 1 + max(one.machine for one in (*senders, *receivers))
    named = [Machine(f"host{m}", "", "") for m in range(machines)]
    quiet: list[Look | None] = [Look(0, 0, 0, 0, 0, 0)] * machines
    given = {"looks": quiet} | more
    asked = replace(ASKED, senders=max(1, len(senders)), receivers=len(receivers))
    return Account(Measured(asked, named, senders, receivers, **given))  # type: ignore[arg-type]


def recorded(found: Account) -> Recording:
    """The record of an account."""
    header = replace(HEADER, experiment="array", settings={"drawn_by": "spead-tutorial array"})
    return Recording.of(header, [Turn.of(found.measured)])
