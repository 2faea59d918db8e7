# SPDX-License-Identifier: BSD-3-Clause
"""An exercise for each chapter: its change, to be made in a program that lacks it."""

import dataclasses
import functools
import re
import tempfile
from pathlib import Path

from spead_tutorial.chapters.catalogue import Chapter, Receiver, find_chapter, find_receiver

__all__ = ["EXERCISES", "RECEIVING", "ReceiverExercise", "SenderExercise", "find_exercise"]

_CHAPTERS = Path(__file__).parent


@dataclasses.dataclass(frozen=True, slots=True)
class Exercise:
    """What a reader is to write."""

    task: str  # Markdown, a line or two each
    hint: str
    program: str  # the name of the chapter's program, which is a solution

    @property
    def chapter(self) -> Chapter | Receiver:
        """Whose change it is."""
        return find_receiver(self.program) or find_chapter(self.program)

    @property
    def skeleton(self) -> Path:
        """The program that lacks it, with marks where it belongs."""
        return Path(_skeletons().name, f"chapter_{self.chapter.number}.py")

    @property
    def solution(self) -> Path:
        """The program that has it."""
        return _CHAPTERS / f"{self.program}.py"


@dataclasses.dataclass(frozen=True, slots=True)
class SenderExercise(Exercise):
    """One whose program sends."""

    mebibytes: int  # how much is sent where it is measured, and in heaps of how many bytes
    heap_size: int = 1 << 20
    is_random: bool = False  # whether its samples are random
    is_limited: bool = False  # whether it has a rate that it is not to exceed: there is none then
    has_ceiling: bool = True  # whether bare loops do the same as the program

    @property
    def chapter(self) -> Chapter:
        return find_chapter(self.program)


@dataclasses.dataclass(frozen=True, slots=True)
class ReceiverExercise(Exercise):
    """One whose program receives."""

    # bytes of samples in the heaps of which the highest rate without loss is looked for; None
    # where the chapter is not about that
    heap_size: int | None = None
    counts: bool = True  # whether it says at the end how many heaps it has received
    gathers: bool = False  # whether it may print a line for several heaps

    @property
    def chapter(self) -> Receiver:
        found = find_receiver(self.program)
        assert found is not None
        return found


def _write_skeletons() -> tempfile.TemporaryDirectory[str]:
    """Write all skeletons: programs of chapters, with the changes that exercises.diff has."""
    folder = tempfile.TemporaryDirectory(prefix="spead-tutorial-")
    text = (_CHAPTERS / "exercises.diff").read_text(encoding="utf-8")
    for part in re.split(r"(?m)^--- ", text)[1:]:
        head, *hunks = re.split(r"(?m)^@@\n", part)
        before, name = head.split("\n+++ ")
        program = (_CHAPTERS / before).read_text(encoding="utf-8")
        for hunk in hunks:
            lines = hunk.splitlines(keepends=True)
            old = "".join(line[1:] or line for line in lines if line[0] != "+")
            new = "".join(line[1:] or line for line in lines if line[0] != "-")
            if program.count(old) != 1:
                raise ValueError(f"exercises.diff, {name.strip()}: {before} has not once\n{old}")
            program = program.replace(old, new)
        Path(folder.name, name.strip()).write_text(program, encoding="utf-8")
    return folder


_skeletons = functools.cache(_write_skeletons)


#: The exercises of the chapters that send, in their order.
EXERCISES = (
    SenderExercise(
        "The skeleton sends ten heaps that have a timestamp and nothing else, and its stream never"
        " ends. Add the samples, and the end.",
        "`add_item` takes a shape and a dtype. An item has its value when `get_heap` is called;"
        " `get_end` makes the heap that ends a stream.",
        "tut_2_send",
        10,
        is_random=True,
        is_limited=True,
    ),
    SenderExercise(
        "The skeleton sends 100 MB/s at most, and its time is that of the whole program. Take the"
        " limit away, and time the loop alone.",
        "A rate of 0 is no limit. Subtract one `Usage.now()` from another, and give `report` the"
        " difference. Ending the stream is not part of it.",
        "tut_4_send_perf",
        64,
        is_random=True,
    ),
    SenderExercise(
        "The skeleton waits for each heap before it prepares the next one. Prepare the next while"
        " one is on its way.",
        "Keep the state of the last heap, and wait for it once the next heap has been queued. One"
        " is left after the loop.",
        "tut_5_send_pipeline",
        2048,
    ),
    SenderExercise(
        "The skeleton takes `-p`, and makes packets of 1472 bytes all the same. Have it make"
        " packets as large as it is told.",
        "It is a setting of the stream, not of the heaps, so there is one line to write.",
        "tut_6_send_pktsize",
        4096,
    ),
    SenderExercise(
        "The skeleton asks for new memory for every heap. Use two arrays in turn.",
        "A state may be written to when its future is done: wait first, then fill, then send."
        " `np.ones` writes to its memory, `np.empty` and `np.zeros` do not.",
        "tut_8_send_reuse_memory",
        4096,
        64 << 20,
    ),
    SenderExercise(
        "The skeleton has two heaps in flight, however small they are, and makes a heap object for"
        " each. Have about 1 MiB in flight, and make the heap objects once.",
        'A zero-dimensional array of type `">u8"` is sent as it is when the packets are made. The'
        ' first heap has the descriptors; the others are `get_heap(descriptors="none",'
        ' data="all")`.',
        "tut_10_send_reuse_heaps",
        512,
        8192,
    ),
    SenderExercise(
        "The skeleton has a call and a completion for every heap. Have one for about 512 KiB of"
        " them.",
        "A batch has arrays with one row for each heap, and a `HeapReferenceList` of its heaps,"
        " which `async_send_heaps` takes, with `GroupMode.SERIAL`. A slice of it is the last"
        " batch.",
        "tut_11_send_batch_heaps",
        4096,
        8192,
    ),
    SenderExercise(
        "The skeleton fills a batch on one thread while another sends the one before. Do both on"
        " one thread, one batch after the other.",
        "A `spead_tutorial.send.UdpStream` without a thread pool sends in `send_heaps`, which"
        " returns when all is sent. So one batch is enough, and there is no `await`.",
        "tut_13_send_hot",
        4096,
        8192,
    ),
    SenderExercise(
        "The skeleton sends with one thread. Have a stream and a thread for each core.",
        "Heap `i` has the count `i + 1`, whoever sends it: `set_cnt_sequence(k + 1, n_streams)`."
        " Heap 0 has the descriptors, and goes before all others; `report` takes the stats of all"
        " streams.",
        "tut_14_send_many_streams",
        8192,
    ),
    SenderExercise(
        "The skeleton sends a recording that is in memory already, and the kernel copies it. Have"
        " it read in place, unless `--copy` is given.",
        "It is a setting of the stream that its constructor takes.",
        "tut_15_send_zero_copy",
        4096,
        has_ceiling=False,
    ),
    SenderExercise(
        "The skeleton cuts a heap into full packets and a rest. Make all packets of a heap equal,"
        " and as large as the route takes, unless `-p` is given.",
        "`route_packet_size` asks the route; `equal_packets` is for the config, `dont_fragment` for"
        " the stream. `ROUTE_SIZE` is the default of `-p`.",
        "tut_16_send_equal_packets",
        4096,
        16384,
        has_ceiling=False,
    ),
)

#: Those of the chapters that receive, in their order.
RECEIVING = (
    ReceiverExercise(
        "The skeleton receives heaps, and prints nothing of them. Have it print the timestamp and"
        " the power of each.",
        "`item_group.update(heap)` returns the items that the heap has a value of; that of the"
        " descriptors comes first. Samples are 8-bit integers, whose squares are not.",
        "tut_3_recv",
        counts=False,
    ),
    ReceiverExercise(
        "The skeleton makes two arrays to find the power of a heap. Find it without any, so that"
        " fewer heaps are lost at a high rate.",
        "A product of sums is a loop in C for `np.einsum`, which takes the type that it adds up in;"
        " the chapters' own way, `mean_square`, is in `spead_tutorial.chapters.receiving`.",
        "tut_7_recv_power",
        1 << 20,
    ),
    ReceiverExercise(
        "The skeleton gets new memory for each heap. Have it receive into memory that other heaps"
        " have left.",
        "`MemoryPool(0, size, max_free=n, initial=n)` is a `memory_allocator` of the stream's"
        " config. A heap's memory comes back when nothing in the program refers to it: neither"
        " variables, nor the items of the group (`del item.value`).",
        "tut_9_recv_memory_pool",
        16 << 20,
    ),
    ReceiverExercise(
        "The skeleton has a chunk for each heap. Have it gather as many as make up about 1 MiB.",
        "A chunk's timestamp is a multiple of `chunk_size`, which follows from `n_heaps`. In the"
        " place function, `timestamp % chunk_size` is how far into its chunk a heap begins.",
        "tut_12_recv_chunks",
        8192,
        gathers=True,
    ),
)


def find_exercise(number: int) -> SenderExercise | ReceiverExercise:
    """Look the exercise of a chapter up; a ValueError lists those that have one."""
    every: list[SenderExercise | ReceiverExercise] = [*EXERCISES, *RECEIVING]
    every.sort(key=lambda exercise: exercise.chapter.number)
    for exercise in every:
        if exercise.chapter.number == number:
            return exercise
    numbers = ", ".join(str(exercise.chapter.number) for exercise in every)
    raise ValueError(f"chapter {number} has no exercise: there are those of {numbers}")
