# SPDX-License-Identifier: BSD-3-Clause
"""What threads wait for that send, or read, and what else they do. No I/O, no clock."""

from collections.abc import Iterable

from spead_tutorial.results.units import percent, thousands
from spead_tutorial.tools.why.account import KINDS, Part
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
    mapped_share,
    names,
    of_time,
    short,
)

# ---- What threads wait for ----


def sleeps(seen: Seen, far: Distance) -> Finding | None:
    """Find a program that waits for time to pass."""
    is_sender, each = seen.receiving is None, ""
    if seen.calls is None and is_sender:
        return None
    tids = {one.tid for one in (seen.account.senders if seen.account else ())}
    waits = sum(thread.voluntary for thread in seen.run.threads if thread.tid in tids)
    if waits and is_sender and seen.account is not None:
        each = f", {short(seen.account.of('sleep') / waits)} each on average"
    return of_time(
        far,
        "sleeps",
        ("sleep",),
        f"by in waits that end when a time has come ({names(far.of('sleep'))}){each}.",
        "Look for sleeps between heaps or reads, for timers that flush, for waits with a timeout"
        " and for a rate that was asked for. A limit that is wanted is no fault; without one, wait"
        " for the heap that is on its way, or for the socket, instead of the clock.",
    )


def spins(_: Seen, far: Distance) -> Finding | None:
    """Find a sender that reads the clock until a time has come."""
    return of_time(
        far,
        "spins",
        ("spin",),
        "into reading the clock until a time has come: it waits, and burns a core.",
        "Look for a loop around the clock: a rate that is kept by spinning. A limit that is wanted"
        " is no fault; without one, send as soon as there is something to send.",
    )


def waits_for_lock(seen: Seen, far: Distance) -> Finding | None:
    """Find threads that share a lock; a full ring of ours looks like one."""
    least = MATTERS
    if seen.receiving is None:
        often = sum(part.calls or 0.0 for part in far.of("lock"))
        least = MATTERS if often >= CONTENDED else MOSTLY
    elif seen.receiving.told.get("worker_blocked"):
        return None
    return of_time(
        far,
        "waits-for-lock",
        ("lock",),
        f"by in waits for a lock ({_other(seen, far, 'lock')}).",
        "Give each thread a socket, buffers and a stream of its own, and hold a lock only to hand"
        " over. Some languages have a lock for every socket (Java), or for all threads (Python):"
        " what several threads do through one of those, one thread does as fast.",
        least,
    )


def waits_for_thread(seen: Seen, far: Distance) -> Finding | None:
    """Find a thread that waits for one that makes the data, or that takes what was read."""
    told, full = seen.receiving.told if seen.receiving else {}, ""
    takes: tuple[str, ...] = ("thread",)
    if blocked := told.get("worker_blocked", 0):
        takes = ("thread", "lock")
        longest = short(told.get("longest_ring_wait_ns", 0) / 1e9)
        full = f" The stream's ring was full {thousands(blocked)} times, for up to {longest}."
    return of_time(
        far,
        "waits-for-thread",
        takes,
        f"by in waits for {_other(seen, far, 'thread')}.{full}",
        "That thread is the slow one. Look at what it computes, and at how heaps are handed over:"
        " have the next one ready while one is sent, or have several threads take what was read."
        " More room between the two (a longer queue or ring) only bridges pauses.",
    )


def _other(seen: Seen, far: Distance, kind: str) -> str:
    """Name the thread that is waited for most, and say what it does."""
    who = names(far.of(kind)[:1]) or "another thread"
    # The one that is waited for may have the name of who waits.
    threads = sorted(seen.account.threads if seen.account else (), key=lambda one: one.sends)
    for one in threads:
        does = [part for part in one.parts if part.kind not in ("core", "thread", "lock")]
        if who in (one.name, f"{one.name} ({one.tid})") and does:
            most = max(does, key=lambda part: part.seconds)
            share = percent(most.seconds / one.seconds)
            return f"{who}, which is {KINDS[most.kind]} for {share} of the time"
    return who


def waits_for_input(_: Seen, far: Distance) -> Finding | None:
    """Find a sender that waits for what it reads, or for another process."""
    whose = names((*far.of("input"), *far.of("process")))
    return of_time(
        far,
        "waits-for-input",
        ("input", "process"),
        f"by in waits for input or for another process ({whose}).",
        "What it reads from is the slow one: a pipe, a file, a socket or a device. Read ahead while"
        " heaps are sent, and see what the other side does.",
    )


def waits_for_room(_: Seen, far: Distance) -> Finding | None:
    """Find a sender whose socket has no room."""
    return of_time(
        far,
        "waits-for-room",
        ("room",),
        f"by in calls that wait for room in the socket ({names(far.of('room'))}).",
        "The link or its queue is the limit, or the socket's buffer is small: look for SO_SNDBUF,"
        " and for a limit of the device (tc qdisc).",
    )


# ---- What they do ----


def other_calls(seen: Seen, far: Distance) -> Finding | None:
    """Find a program that calls the kernel for each packet, but not to send or read it."""
    if seen.calls is None and seen.receiving is None:
        return None
    kinds = ("calls",) if seen.receiving is None else ("calls", "process", "spin")
    parts = [part for part in far.parts if part.kind in kinds]
    named = [f"{part.what}{_often(part)}{_file(seen, part.what)}" for part in parts if part.what]
    return of_time(
        far,
        "other-calls",
        kinds,
        f"into other calls: {', '.join(named[:MOST_NAMES])}.{_guess(seen, parts)}",
        "Do for each packet only what has to be done for each: look up addresses once, before the"
        " first packet; write a line for many packets, or none; take random numbers from a"
        " generator of the program's own.",
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
    """Find a program that gets new memory for its data again and again."""
    faults, share = seen.run.per_gb(seen.run.faults), far.share("faults")
    mapped = mapped_share(seen.packets, seen.calls)
    if seen.receiving is not None and share < MATTERS:
        return None
    if faults * PAGE / 1e9 >= FRESH or seen.receiving is not None:
        symptom = (
            f"{faults:.0f} page faults for each gigabyte, which has {1e9 / PAGE:.0f} pages: new"
            " memory again and again."
        )
    elif mapped >= FRESH and share >= CLEARED:
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
        "Look for memory that is allocated and freed for every heap or read, and for NumPy"
        " expressions that make a new array. Fill the same buffers in turn.",
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
    them = " and ".join(f"{thread.name} ({thread.tid})" for thread in together)
    return Finding(
        "shared-core",
        f"{them} may only use core {together[0].cpus[0]}, though there are {seen.cores}"
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
