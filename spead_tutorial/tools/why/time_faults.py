# SPDX-License-Identifier: BSD-3-Clause
"""What threads that send wait for, and what they do but send. No I/O, no clock."""

from collections.abc import Iterable

from spead_tutorial.results.units import percent
from spead_tutorial.tools.why.account import Part
from spead_tutorial.tools.why.calls import OUTPUT
from spead_tutorial.tools.why.distance import Distance
from spead_tutorial.tools.why.facts import PAGE, Seen
from spead_tutorial.tools.why.finding import (
    BUSY,
    CLEARED,
    CONTENDED,
    ENOUGH_CPU_S,
    FRESH,
    MATTERS,
    MOST_NAMES,
    MOSTLY,
    SLOW_S,
    Finding,
    handling_s,
    has_small_heaps,
    names,
    short,
)

# ---- What threads wait for ----


def sleeps(seen: Seen, far: Distance) -> Finding | None:
    """Find a sender that waits for time to pass."""
    share = far.share("sleep")
    if seen.calls is None or share < MATTERS:
        return None
    waits = sum(thread.voluntary for thread in seen.run.threads if _sends(seen, thread.tid))
    slept = seen.account.of("sleep") if seen.account else 0.0
    each = f", {short(slept / waits)} each on average" if waits else ""
    return Finding(
        "sleeps",
        f"{percent(share)} of the time of what sends goes by in waits that end when a time has"
        f" come ({names(far.of('sleep'))}){each}.",
        "Look for sleeps between heaps, for timers that flush, for waits with a timeout and for a"
        " rate that was asked for. A limit that is wanted is no fault; without one, wait for the"
        " heap that is on its way instead of the clock.",
        far.take("sleep"),
    )


def spins(_: Seen, far: Distance) -> Finding | None:
    """Find a sender that reads the clock until a time has come."""
    share = far.share("spin")
    if share < MATTERS:
        return None
    return Finding(
        "spins",
        f"{percent(share)} of the time of what sends goes into reading the clock until a time has"
        " come: it waits, and burns a core.",
        "Look for a loop around the clock: a rate that is kept by spinning. A limit that is wanted"
        " is no fault; without one, send as soon as there is something to send.",
        far.take("spin"),
    )


def waits_for_lock(_: Seen, far: Distance) -> Finding | None:
    """Find threads that send in turns, as they share a lock."""
    share = far.share("lock")
    often = sum(part.calls or 0.0 for part in far.of("lock"))
    if share < (MATTERS if often >= CONTENDED else MOSTLY):
        return None
    return Finding(
        "waits-for-lock",
        f"{percent(share)} of the time of the threads that send goes by in waits for each other"
        f" ({names(far.of('lock'))}): they share a lock.",
        "Give each thread a socket, buffers and a stream of its own. Some languages have a lock for"
        " every socket (Java), or for all threads (Python): what several threads send through one"
        " of those, one thread sends as fast.",
        far.take("lock"),
    )


def waits_for_thread(seen: Seen, far: Distance) -> Finding | None:
    """Find a thread that sends, and waits for one that makes the data."""
    share = far.share("thread")
    if share < MATTERS:
        return None
    who = names(far.of("thread")[:1]) or "another thread"
    does = ""
    if seen.account is not None:
        others = (one for one in seen.account.threads if f"{one.name} ({one.tid})" == who)
        for other in others:
            kinds = [part for part in other.parts if part.kind not in ("core", "thread", "lock")]
            if kinds:
                does = f", which is {_does(kinds[0])} most of that time"
    return Finding(
        "waits-for-thread",
        f"{percent(share)} of the time of what sends goes by in waits for {who}{does}.",
        "The thread that makes the data is the slow one. Look at what it computes, and at how heaps"
        " are handed over: have the next one ready while one is sent.",
        far.take("thread"),
    )


def _does(part: Part) -> str:
    words = {"own": "in its own code", "sleep": "asleep", "calls": "in other calls",
             "faults": "in page faults", "input": "waiting for input"}  # fmt: skip
    where = f" ({part.what})" if part.what else ""
    return f"{words.get(part.kind, 'busy')}{where}"


def waits_for_input(_: Seen, far: Distance) -> Finding | None:
    """Find a sender that waits for what it reads, or for another process."""
    share = far.share("input") + far.share("process")
    if share < MATTERS:
        return None
    whose = names((*far.of("input"), *far.of("process")))
    return Finding(
        "waits-for-input",
        f"{percent(share)} of the time of what sends goes by in waits for input or for another"
        f" process ({whose}).",
        "What it reads from is the slow one: a pipe, a file, a socket or a device. Read ahead while"
        " heaps are sent, and see what the other side does.",
        far.take("input") + far.take("process"),
    )


def waits_for_room(_: Seen, far: Distance) -> Finding | None:
    """Find a sender whose socket has no room."""
    share = far.share("room")
    if share < MATTERS:
        return None
    return Finding(
        "waits-for-room",
        f"{percent(share)} of the time of what sends goes by in calls that wait for room in the"
        f" socket ({names(far.of('room'))}).",
        "The link or its queue is the limit, or the socket's buffer is small: look for SO_SNDBUF,"
        " and for a limit of the device (tc qdisc).",
        far.take("room"),
    )


# ---- What they do ----


def other_calls(seen: Seen, far: Distance) -> Finding | None:
    """Find a sender that calls the kernel for other things than sending, for each packet."""
    share = far.share("calls")
    if seen.calls is None or share < MATTERS:
        return None
    parts = far.of("calls")
    named = [f"{part.what}{_often(part)}{_file(seen, part.what)}" for part in parts if part.what]
    return Finding(
        "other-calls",
        f"{percent(share)} of the time of what sends goes into calls that do not send:"
        f" {', '.join(named[:MOST_NAMES])}.{_guess(seen, parts)}",
        "Do for each packet only what has to be done for each: look up addresses once, before the"
        " first packet; write a line for many packets, or none; take random numbers from a"
        " generator of the program's own.",
        far.take("calls"),
    )


def _often(part: Part) -> str:
    if part.calls is None:
        return ""
    times = f"{part.calls:.2g}" if part.calls < 10 else f"{part.calls:.0f}"
    return f" ({times} for each packet)"


def _files(seen: Seen, name: str) -> list[str]:
    callers = seen.calls.callers if seen.calls else ()
    return [call.on for caller in callers for call in caller.calls if call.name == name and call.on]


def _file(seen: Seen, name: str) -> str:
    files = _files(seen, name)
    return f" on {files[0]}" if files else ""


def _guess(seen: Seen, parts: Iterable[Part]) -> str:
    """Say what such calls are probably for."""
    names = {part.what for part in parts}
    files = {file for name in names for file in _files(seen, name)}
    looked_up = ("/etc/hosts", "/etc/resolv.conf", "/etc/nsswitch.conf", "/etc/gai.conf",
                 "/etc/host.conf", "/run/nscd", "/var/run/nscd")  # fmt: skip
    if any(file.startswith(looked_up) for file in files) or names >= {"socket", "recvmsg", "close"}:
        return " So it looks up an address: getaddrinfo."
    if "getrandom" in names or "/dev/urandom" in files:
        return " So its data is the kernel's random numbers: os.urandom."
    if names & {"write", "writev"} and any(file.startswith(("/", OUTPUT)) for file in files):
        return " So it writes a log."
    return ""


def slow_data(seen: Seen, far: Distance) -> Finding | None:
    """Find a sender that takes longer to make its data than to send it."""
    run = seen.run
    own_s = far.left["own"] - handling_s(seen)
    share = own_s / far.whole if far.whole else 0.0
    if run.cpu_s < ENOUGH_CPU_S or own_s < SLOW_S or share < MATTERS or has_small_heaps(seen):
        return None
    where = names(far.of("own"))
    doubt = " Without perf it is not known whether it only reads the clock."
    return Finding(
        "slow-data",
        f"The program computes for {own_s:.2f} s for each gigabyte that it sends:"
        f" {percent(share)} of the time of what sends is its own code"
        f"{f' ({where})' if where else ''}.{doubt if seen.sampled is None else ''}",
        "Send constant samples for once: if that is much faster, it is not the sender that is slow,"
        " but what makes the samples. A profiler shows which lines.",
        far.take("own", own_s) if seen.sampled is not None else None,
    )


def fresh_memory(seen: Seen, far: Distance) -> Finding | None:
    """Find a sender that gets new memory for its data again and again."""
    run = seen.run
    faults = run.per_gb(run.faults)
    share = faults * PAGE / 1e9
    mapped = _mapped(seen)
    if share >= FRESH:
        symptom = (
            f"{faults:.0f} page faults for each gigabyte, which has {1e9 / PAGE:.0f} pages: new"
            " memory again and again."
        )
    elif mapped >= FRESH and far.share("faults") >= CLEARED:
        # Huge pages have few faults, and each of them clears as much memory as 512 others.
        symptom = (
            f"New memory for {percent(mapped)} of what is sent, in huge pages: only"
            f" {faults:.0f} page faults for each gigabyte, but all of it is cleared first."
        )
    else:
        return None
    return Finding(
        "fresh-memory",
        symptom,
        "Look for memory that is allocated and freed for every heap, and for NumPy expressions that"
        " make a new array. Fill the same buffers in turn.",
        far.take("faults"),
    )


def shared_core(seen: Seen, far: Distance) -> Finding | None:
    """Find busy threads that are kept to a single core, though there are others."""
    run = seen.run
    busy = [thread for thread in run.threads if run.cpu_s and thread.cpu_s >= BUSY * run.cpu_s]
    kept = [thread for thread in busy if len(thread.cpus) == 1]
    cores = {thread.cpus[0] for thread in kept}
    together = max(
        ([one for one in kept if one.cpus[0] == core] for core in sorted(cores)),
        key=len, default=[],
    )  # fmt: skip
    if len(together) < 2 or seen.cores < 2:
        return None
    names = " and ".join(f"{thread.name} ({thread.tid})" for thread in together)
    return Finding(
        "shared-core",
        f"{names} may only use core {together[0].cpus[0]}, though there are {seen.cores}"
        " cores: one waits while the other works.",
        "Look for sched_setaffinity, pthread_setaffinity_np and taskset. Give each thread a core"
        " of its own, or leave it to the kernel.",
        _together_s(seen, far, min(thread.cpu_s for thread in together)),
    )


def _together_s(seen: Seen, far: Distance, cpu_s: float) -> float:
    """Take what threads wait for each other that share a core: that wait is their own."""
    most = seen.run.per_gb(cpu_s)
    taken = far.take("core", most)  # the rest of it is for others
    far.whole += taken
    far.longer = None if far.longer is None else far.longer + taken
    for kind in ("thread", "lock", "own"):
        taken += far.take(kind, most - taken)
    return taken


def _sends(seen: Seen, tid: int) -> bool:
    account = seen.account
    return account is not None and any(one.tid == tid for one in account.senders)


def _mapped(seen: Seen) -> float:
    """Return how much new memory a sender got, as a share of what it sent meanwhile."""
    if seen.calls is None or seen.packets is None or not seen.calls.messages:
        return 0.0
    packets = seen.packets
    each = packets.payload_bytes / (packets.messages - packets.fragments)
    return seen.calls.mapped_bytes / (seen.calls.messages * each)
