# SPDX-License-Identifier: BSD-3-Clause
"""The chapters and their exercises, as data: the one place where a program is registered.

It imports nothing of the package, so that a build can also read it: run as a script, it prints the
names of all programs.
"""

import dataclasses
from collections.abc import Collection

__all__ = [
    "BESIDE_LADDER",
    "CHAINED",
    "CHAPTERS",
    "LADDER",
    "LANGUAGES",
    "MEASURED",
    "PROGRAMS",
    "RECEIVERS",
    "STEPS",
    "SWITCHES",
    "Chapter",
    "Receiver",
    "Rung",
    "find_chapter",
    "find_receiver",
    "switch_flag",
]

#: What every chapter has a program in.
LANGUAGES = ("python", "c", "cpp")
#: Those of them that records and pictures compare, and that a tour shows.
MEASURED = ("python", "c")

#: What the letter z stands for: words that are options of a program, and of a case's variant.
SWITCHES = ("copy", "small pages", "fill")


@dataclasses.dataclass(frozen=True, slots=True)
class Chapter:
    """A chapter that has a program."""

    number: int  #: Its number; those that are missing are of `RECEIVERS`.
    name: str  #: Name of its programs: ``name`` in C and in C++, ``name.py`` in Python.
    title: str  #: What it is about.
    change: str  #: What its programs do that those of the chapter before did not.
    #: A letter for each option of the programs (n, H, p, r, s, c), z for all of `SWITCHES`, and d
    #: for a destination.
    accepted: str
    #: What its programs do when they are not told otherwise; sizes in bytes. A packet size of 0 is
    #: what the route to the destination takes in one piece.
    heaps: int = 10000
    heap_size: int = 1 << 20
    packet_size: int = 9000

    @property
    def takes_destination(self) -> bool:
        """Whether one can say where to send to; chapter 2 sends to port 8888 of loopback."""
        return "d" in self.accepted

    @property
    def flags(self) -> tuple[str, ...]:
        """The options that it takes, as one types them."""
        letters = [f"-{letter}" for letter in self.accepted if letter not in "zd"]
        return (*letters, *(switch_flag(word) for word in self.switches(SWITCHES)))

    def switches(self, words: Collection[str]) -> tuple[str, ...]:
        """Return those words that are options of the programs, in the order of `SWITCHES`.

        Parameters
        ----------
        words : collection of str
            Such as those of a variant.
        """
        return tuple(word for word in SWITCHES if "z" in self.accepted and word in words)


def switch_flag(word: str) -> str:
    """Return an option as one types it, such as ``"--small-pages"``.

    Parameters
    ----------
    word : str
        One of `SWITCHES`.
    """
    return "--" + word.replace(" ", "-")


#: The chapters that have programs, in their order.
CHAPTERS = (
    Chapter(
        2,
        "tut_2_send",
        "A first sender",
        "ten heaps of random samples, at most 100 MB/s",
        "",
        heaps=10,
        packet_size=1472,
    ),
    Chapter(
        4,
        "tut_4_send_perf",
        "Measure it",
        "no limit to the rate, a clock around the loop",
        "nHcd",
        heaps=100,
        packet_size=1472,
    ),
    Chapter(
        5,
        "tut_5_send_pipeline",
        "Send while preparing",
        "a heap is prepared while the last one is sent",
        "nHrcd",
        heaps=100,
        packet_size=1472,
    ),
    Chapter(6, "tut_6_send_pktsize", "Bigger packets", "packets of 9000 bytes", "npd"),
    Chapter(
        8, "tut_8_send_reuse_memory", "Reuse memory", "two buffers in turn, no new memory", "nHpd"
    ),
    Chapter(
        10,
        "tut_10_send_reuse_heaps",
        "Reuse heaps",
        "1 MiB in flight, heap objects built once",
        "nHpd",
    ),
    Chapter(
        11, "tut_11_send_batch_heaps", "Batches of heaps", "one call for 512 KiB of heaps", "nHpd"
    ),
    Chapter(
        13,
        "tut_13_send_hot",
        "Send where the data is hot",
        "one thread fills a batch, and sends it",
        "nHpd",
    ),
    Chapter(
        14,
        "tut_14_send_many_streams",
        "A stream for each core",
        "a stream and a thread for each core, one sequence of heaps",
        "nHpsd",
    ),
    Chapter(
        15,
        "tut_15_send_zero_copy",
        "Zero-copy",
        "a recording that the kernel reads in place",
        "nHpzd",
    ),
    Chapter(
        16,
        "tut_16_send_equal_packets",
        "Equal packets and the path's MTU",
        "equal packets, as large as the route takes",
        "nHpd",
        packet_size=0,
    ),
)

#: Programs on the way to a chapter, whose number they have: as whole as the chapter's own, and
#: there so that each cause of its gain can be measured by itself.
STEPS: tuple[Chapter, ...] = (
    Chapter(
        4,
        "tut_4_send_constant",
        "Constant samples",
        "constant samples instead of random ones",
        "nHcd",
        heaps=100,
        packet_size=1472,
    ),
    Chapter(
        5,
        "tut_5_send_async",
        "An asynchronous call",
        "an asynchronous call, waited for at once",
        "nHrcd",
        heaps=100,
        packet_size=1472,
    ),
    Chapter(
        8,
        "tut_8_send_heap_size",
        "Heaps of any size",
        "heaps of any size, each in new memory",
        "nHpd",
    ),
    Chapter(10, "tut_10_send_more_heaps", "More heaps in flight", "1 MiB in flight", "nHpd"),
    Chapter(
        11,
        "tut_11_send_list_of_heaps",
        "A list of heaps",
        "one call for 512 KiB of heaps, listed anew each time",
        "nHpd",
    ),
    Chapter(
        13,
        "tut_13_send_no_thread",
        "No thread",
        "chapter 10, sent by the thread that fills",
        "nHpd",
    ),
)

#: All that send.
PROGRAMS = (*CHAPTERS, *STEPS)


@dataclasses.dataclass(frozen=True, slots=True)
class Receiver:
    """A chapter that has a program which receives: no rate of its own is measured or chained."""

    number: int  #: Its number.
    name: str  #: Name of its programs, as of a `Chapter`.
    title: str  #: What it is about.
    change: str  #: What its programs do that those of the receiver before did not.
    #: A letter for each option of the programs besides -t: H, which is told what the sender's heaps
    #: have, b, and s.
    accepted: str = ""

    @property
    def flags(self) -> tuple[str, ...]:
        """The options that it takes, as one types them."""
        return tuple(f"-{letter}" for letter in self.accepted)


#: The chapters that receive, in their order.
RECEIVERS = (
    Receiver(
        3, "tut_3_recv", "A first receiver", "receives heaps, and prints values as they arrive"
    ),
    Receiver(
        7,
        "tut_7_recv_power",
        "Power that keeps up",
        "squares are added up as they are made, and heaps counted",
    ),
    Receiver(
        9,
        "tut_9_recv_memory_pool",
        "Receive into memory of your own",
        "heaps go into memory that others have left, in a pool",
        "Hb",
    ),
    Receiver(
        12, "tut_12_recv_chunks", "Chunks", "small heaps are gathered in chunks of about 1 MiB", "H"
    ),
    Receiver(
        17,
        "tut_17_recv_hot",
        "Receive where the data is read",
        "the thread that computes the power reads the socket",
    ),
    Receiver(
        18,
        "tut_18_recv_many_sockets",
        "A socket for each core",
        "several sockets on one port, each read by a thread of its own",
        "s",
    ),
)

#: Those whose highest rates without loss are chained, each after the one before.
CHAINED = RECEIVERS[:4]


@dataclasses.dataclass(frozen=True, slots=True)
class Rung:
    """A program at the setting at which its gain is chained with those of the others."""

    program: str  #: Its name.
    mebibytes: int  #: How much it sends in about half a second.
    heap_size: int = 1 << 20  #: Bytes of samples in a heap.

    @property
    def packet_size(self) -> int:
        """The program's own; 9000, as those before it have, where the route has the say."""
        return find_chapter(self.program).packet_size or 9000


#: Every chapter at common settings, and chapter 4's step, without which the end of random samples
#: would look like a gain of chapter 5: heaps of 1 MiB for all, and of 8 KiB for those whose gain
#: is with small heaps. It ends with one thread, and with all cores.
LADDER = (
    Rung("tut_2_send", 10),
    Rung("tut_4_send_perf", 64),
    Rung("tut_4_send_constant", 4096),
    Rung("tut_5_send_pipeline", 4096),
    Rung("tut_6_send_pktsize", 4096),
    Rung("tut_8_send_reuse_memory", 4096),
    Rung("tut_10_send_reuse_heaps", 4096),
    Rung("tut_11_send_batch_heaps", 4096),
    Rung("tut_13_send_hot", 4096),
    Rung("tut_14_send_many_streams", 4096),
    Rung("tut_8_send_reuse_memory", 512, 8192),
    Rung("tut_10_send_reuse_heaps", 4096, 8192),
    Rung("tut_11_send_batch_heaps", 4096, 8192),
    Rung("tut_13_send_hot", 4096, 8192),
    Rung("tut_14_send_many_streams", 4096, 8192),
)

#: The chapters whose gain is not over the one before: other data, other packets.
BESIDE_LADDER = (
    Rung("tut_15_send_zero_copy", 4096),
    Rung("tut_16_send_equal_packets", 4096),
)

#: Names that chapters had elsewhere.
_OLDER_NAMES = {"tut_send_2": 5, "tut_send_3": 6}


def find_chapter(text: str) -> Chapter:
    """Look a chapter up by its number, its name, or one of the older names; a step by its name.

    Parameters
    ----------
    text : str
        Such as ``"10"``, ``"tut_10_send_reuse_heaps"``, ``"tut_send_2"`` (an older name of 5).

    Raises
    ------
    ValueError
        Where there is none; the text lists those there are.
    """
    wanted = text.strip().removesuffix(".py")
    number = _OLDER_NAMES.get(wanted)
    for chapter in CHAPTERS:
        if chapter.number == number or wanted in (str(chapter.number), chapter.name):
            return chapter
    for step in STEPS:
        if step.name == wanted:
            return step
    numbers = ", ".join(str(chapter.number) for chapter in CHAPTERS)
    raise ValueError(f"there is no chapter {text!r} that sends: there are {numbers}")


def find_receiver(text: str) -> Receiver | None:
    """Look a chapter that receives up by its number or its name; None where there is none.

    Parameters
    ----------
    text : str
        Such as ``"3"`` or ``"tut_3_recv"``.
    """
    wanted = text.strip().removesuffix(".py")
    for receiver in RECEIVERS:
        if wanted in (str(receiver.number), receiver.name):
            return receiver
    return None


# ---- Exercises ----


@dataclasses.dataclass(frozen=True, slots=True)
class Exercise:
    """What a reader is to write."""

    task: str  # Markdown, a line or two each
    hint: str
    program: str  # the name of the chapter's program, which is the solution

    @property
    def chapter(self) -> Chapter | Receiver:
        """Whose change it is."""
        return find_receiver(self.program) or find_chapter(self.program)


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
        "Heap `i` has the count `i + 1`, in every stream: `set_cnt_sequence(k + 1, n_streams)`."
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
    ReceiverExercise(
        "The skeleton has a thread that reads the socket, and another that computes the power. Have"
        " one thread do both.",
        "A stream without a thread pool has no thread: it reads its socket when it is asked for a"
        " heap.",
        "tut_17_recv_hot",
        1 << 20,
    ),
    ReceiverExercise(
        "The skeleton has a socket and a thread, and ignores `-s`. Have it read several sockets"
        " on one port, with a thread for each.",
        "All who share a port say so: `reuse_port=True`. The rest of the program is made for any"
        " number of sockets.",
        "tut_18_recv_many_sockets",
    ),
)


if __name__ == "__main__":
    print(*(one.name for one in PROGRAMS), *(one.name for one in RECEIVERS), sep="\n")
