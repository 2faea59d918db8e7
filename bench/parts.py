# SPDX-License-Identifier: BSD-3-Clause
"""Which part of sending heaps a function is: the one table that says so.

A look at a thread is put into a part by its stack, from the innermost function outwards: the first
function that the table knows decides, so that what it calls counts as its own.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from bench.stacks import Frame, Look
from spead_tutorial.measure.analysis.split import OTHER

__all__ = ["part_of", "sorted_out"]

_SEND = re.compile(r"udp(v6)?_sendmsg")
_SENDING = re.compile(r"sendm?msg")
#: In a system call that sends, from ``udp_sendmsg`` inwards. What is none of these is the stack.
_BELOW_SEND = (
    ("copy", re.compile(r"copy_from_iter")),
    (
        "buffers",
        re.compile(
            r"alloc_skb|alloc_send|alloc_(frozen_)?page|free_(frozen_)?page|page_from_freelist"
            r"|page_frag|kmem_cache|kmalloc|kfree|skb_release|consume_skb|skb_free|sock_wfree|_folio"
        ),
    ),
)
#: Elsewhere in the kernel.
_DEVICE = re.compile(r"net_rx_action|net_tx_action|tasklet")
_SLEEP = re.compile(r"futex|schedule|poll|eventfd|nanosleep|_sys_(read|write)$|yield")
_ENTRY = re.compile(r"syscall|SYSCALL")
#: The C library's, where a thread is found in it: what it calls the kernel for.
_LIBRARY = (
    ("lock", re.compile(r"mutex_(un)?lock|lll_lock")),
    ("wake-up", re.compile(r"futex|cond_|poll|libc_(read|write)$|^(read|write)$|nanosleep")),
    ("system call", re.compile(r"sendm?msg$")),
)
_FILL = re.compile(r"array_fill|FillWithScalar|AssignRawScalar|raw_array_assign")
#: Ours. In Cython's names, what comes before the method's own is left out.
_OURS = (
    ("looking", r"wait_until|done_soon"),
    (
        "completion",
        r"spt_stream_(wait|poll|fd|flush)|spt_completion_\w+|spti_stream_(finish_heap|retire|settle)"
        r"|settle_batch|spti_heap_return|spti_transport_taken|\d*(finish|settle|watch)|\d+_drain"
        r"|\d+drain",
    ),
    (
        "queue",
        r"spt_stream_send\w*|enqueue|fill_slots|spti_heap_borrow|spt_packetizer_init"
        r"|spti_task_wake|check_send|\d*(send|create_future|arrange|queue|to_list|to_mode)"
        r"|\d+(async_)?send_heaps?|\w*HeapReference\w*",
    ),
    (
        "packetizing",
        r"spt_packetizer_next|spti_put_prefix|spti_heap_item_immediate|spti_stream_run|udp_send"
        r"|make(_messages)?|add_packet|fill_batch|send_batch|spt_rate_\w+|spti_transport_\w+",
    ),
    (
        "wake-up",
        r"run|thread_main|sleep_until|collect|take|spti_stream_(has_work|help_\w+)|spti_pool_\w+"
        r"|\d*_?turn",
    ),
    ("program", r"main"),
)
_OURS_COMPILED = tuple((part, re.compile(names)) for part, names in _OURS)
_CYTHON = re.compile(r"__pyx_(?:f|pf|pw)_14spead_tutorial_5_core_(?:\d+[A-Z]\w*?Stream_)?")


def part_of(frames: Sequence[Frame], own: bool) -> str:
    """Return the part that a stack is of."""
    kernel = [frame.name for frame in frames if frame.of_kernel]
    return _of_kernel(kernel) or _of_program([f for f in frames if not f.of_kernel], own)


def _of_kernel(names: Sequence[str]) -> str | None:
    """Return the part of a stack in the kernel; None where it only interrupts a program."""
    whole = " ".join(names)
    if _DEVICE.search(whole):
        return "stack"
    if _SEND.search(whole):
        return next(
            (part for name in names for part, known in _BELOW_SEND if known.search(name)), "stack"
        )
    if _SLEEP.search(whole):
        return "wake-up"
    return "system call" if _SENDING.search(whole) or _ENTRY.search(whole) else None


def _of_program(frames: Sequence[Frame], own: bool) -> str:
    if not frames:
        return OTHER
    names = [frame.name for frame in frames]
    library = names[0] if "/libc" in frames[0].file else ""
    for part, known in _LIBRARY:
        if library and known.search(library):
            return part
    if any(_FILL.search(name) for name in names):
        return "fill"
    if "memset" in library and names[1:2] == ["main"]:
        return "fill"
    for name in (frame.name for frame in frames if _is_ours(frame)):
        plain = _CYTHON.sub("", name).partition("@")[0].partition(".")[0]
        for part, known in _OURS_COMPILED:
            if known.fullmatch(plain):
                return part
    return "program" if own and names[0] != "[unknown]" else OTHER


def _is_ours(frame: Frame) -> bool:
    path = Path(frame.file)
    return path.name.startswith("_core.") or path.parts[-3:-1] == ("spead_tutorial", "chapters")


def sorted_out(looks: Iterable[Look]) -> tuple[Counter[str], Counter[str], Counter[str]]:
    """Count the parts of a run from its first send to its last."""
    looks = list(looks)
    sends = [one.at_s for one in looks if any(_SEND.search(frame.name) for frame in one.frames)]
    own, others, unsorted = Counter[str](), Counter[str](), Counter[str]()
    for one in looks:
        if not sends or not sends[0] <= one.at_s <= sends[-1]:
            continue
        mine = one.thread == one.process
        part = part_of(one.frames, mine)
        (own if mine else others)[part] += 1
        if part == OTHER:
            unsorted[one.frames[0].name if one.frames else "[unknown]"] += 1
    return own, others, unsorted
