# SPDX-License-Identifier: BSD-3-Clause
"""The chapters and their exercises, as data: the one place where a program is registered.

It imports nothing of the package, so that a build can also read it: run as a script, it prints the
names of all programs.
"""

import dataclasses
import functools
import re
from collections.abc import Collection, Iterable
from pathlib import Path

__all__ = [
    "ARRAY",
    "BESIDE_LADDER",
    "CHAINED",
    "CHAPTERS",
    "LADDER",
    "LANGUAGES",
    "MEASURED",
    "NAMES",
    "PROGRAMS",
    "RECEIVERS",
    "STEPS",
    "SWITCHES",
    "Chapter",
    "Receiver",
    "Rung",
    "find_chapter",
    "find_language",
    "find_receiver",
    "find_sender",
    "switch_flag",
]

#: What languages are called.
NAMES = {"python": "Python", "c": "C", "cpp": "C++"}
#: What every chapter has a program in.
LANGUAGES = tuple(NAMES)
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
    #: A letter for each option of the programs (n, H, p, r, s, c), z for all of `SWITCHES`, d for a
    #: destination, and a for the place in an array, with several.
    accepted: str
    heaps: int = 10000  #: How many heaps its programs send when they are not told otherwise.
    heap_size: int = 1 << 20  #: Bytes of samples in each of them.
    #: Bytes of a packet at most; 0 is what the route to the destination takes in one piece.
    packet_size: int = 9000
    minutes: int = 0  #: About how long its page takes, read and tried; 0 of a step.

    @property
    def takes_destination(self) -> bool:
        """Whether one can say where to send to; chapter 2 sends to port 8888 of loopback."""
        return not {*"da"}.isdisjoint(self.accepted)

    @property
    def flags(self) -> tuple[str, ...]:
        """The options that it takes, as one types them."""
        letters = [f"-{letter}" for letter in self.accepted if letter not in "zda"]
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
    Chapter(2, "tut_2_send", "A first sender", "ten heaps of random samples, at most 100 MB/s", "",
            heaps=10, packet_size=1472, minutes=22),
    Chapter(4, "tut_4_send_perf", "Measure it", "no limit to the rate, a clock around the loop",
            "nHcd", heaps=100, packet_size=1472, minutes=28),
    Chapter(5, "tut_5_send_pipeline", "Send while preparing",
            "a heap is prepared while the last one is sent", "nHrcd", heaps=100,
            packet_size=1472, minutes=33),
    Chapter(6, "tut_6_send_pktsize", "Bigger packets", "packets of 9000 bytes", "npd", minutes=28),
    Chapter(8, "tut_8_send_reuse_memory", "Reuse memory", "two buffers in turn, no new memory",
            "nHpd", minutes=26),
    Chapter(10, "tut_10_send_reuse_heaps", "Reuse heaps",
            "1 MiB in flight, heap objects built once", "nHpd", minutes=28),
    Chapter(11, "tut_11_send_batch_heaps", "Batches of heaps", "one call for 512 KiB of heaps",
            "nHpd", minutes=28),
    Chapter(13, "tut_13_send_hot", "Send where the data is hot",
            "one thread fills a batch, and sends it", "nHpd", minutes=16),
    Chapter(14, "tut_14_send_many_streams", "A stream for each core",
            "a stream and a thread for each core, one sequence of heaps", "nHpsd", minutes=11),
    Chapter(15, "tut_15_send_zero_copy", "Zero-copy", "a recording that the kernel reads in place",
            "nHpzd", minutes=17),
    Chapter(16, "tut_16_send_equal_packets", "Equal packets and the path's MTU",
            "equal packets, as large as the route takes", "nHpd", packet_size=0, minutes=9),
)  # fmt: skip

#: Programs on the way to a chapter, whose number they have: as whole as the chapter's own, and
#: there so that each cause of its gain can be measured by itself.
STEPS: tuple[Chapter, ...] = (
    Chapter(4, "tut_4_send_constant", "Constant samples", "constant samples instead of random ones",
            "nHcd", heaps=100, packet_size=1472),
    Chapter(5, "tut_5_send_async", "An asynchronous call",
            "an asynchronous call, waited for at once", "nHrcd", heaps=100, packet_size=1472),
    Chapter(8, "tut_8_send_heap_size", "Heaps of any size", "heaps of any size, each in new memory",
            "nHpd"),
    Chapter(10, "tut_10_send_more_heaps", "More heaps in flight", "1 MiB in flight", "nHpd"),
    Chapter(11, "tut_11_send_list_of_heaps", "A list of heaps",
            "one call for 512 KiB of heaps, listed anew each time", "nHpd"),
    Chapter(13, "tut_13_send_no_thread", "No thread", "chapter 10, sent by the thread that fills",
            "nHpd"),
)  # fmt: skip

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
    #: have, b, s, and a for the senders of an array.
    accepted: str = ""
    minutes: int = 0  #: About how long its page takes, read and tried.
    sender: str = "2"  #: The chapter that sends to it where none is named.

    @property
    def flags(self) -> tuple[str, ...]:
        """The options that it takes, as one types them."""
        return tuple(f"-{letter}" for letter in self.accepted if letter != "a")


#: The chapters that receive, in their order.
RECEIVERS = (
    Receiver(3, "tut_3_recv", "A first receiver",
             "receives heaps, and prints values as they arrive", minutes=17),
    Receiver(7, "tut_7_recv_power", "Power that keeps up",
             "squares are added up as they are made, and heaps counted", minutes=22),
    Receiver(9, "tut_9_recv_memory_pool", "Receive into memory of your own",
             "heaps go into memory that others have left, in a pool", "Hb", minutes=16),
    Receiver(12, "tut_12_recv_chunks", "Chunks",
             "small heaps are gathered in chunks of about 1 MiB", "H", minutes=13, sender="19"),
    Receiver(17, "tut_17_recv_hot", "Receive where the data is read",
             "the thread that computes the power reads the socket", minutes=11),
    Receiver(18, "tut_18_recv_many_sockets", "A socket for each core",
             "several sockets on one port, each read by a thread of its own", "s", minutes=11),
)  # fmt: skip

#: What sends and what receives in an array: each is one of many, so neither is measured with a
#: chapter before.
ARRAY: tuple[Chapter, Receiver] = (
    Chapter(19, "tut_19_send_corner_turn", "An array: every sender to every receiver",
            "a stream with a substream for each receiver, and one rate for all", "nHpa",
            minutes=13),
    Receiver(19, "tut_19_recv_corner_turn", "An array: every sender to every receiver",
             "a socket for each sender, whose streams fill the same chunks", "Ha", minutes=13),
)  # fmt: skip

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


def find_language(text: str) -> str:
    """Return which of `LANGUAGES` a word means, in letters of any size.

    Parameters
    ----------
    text : str
        Such as ``"C"``, ``"Python"``, ``"cpp"`` or ``"C++"``.

    Raises
    ------
    ValueError
        Where it means none; the text lists them.
    """
    language = text.strip().lower().replace("+", "p")
    if language not in LANGUAGES:
        raise ValueError(f"there is no program in {text!r}: say {', '.join(LANGUAGES)} (or c++)")
    return language


def find_chapter(text: str) -> Chapter:
    """Look a chapter up by its number or its name; a step by its name.

    Parameters
    ----------
    text : str
        Such as ``"10"`` or ``"tut_10_send_reuse_heaps"``.

    Raises
    ------
    ValueError
        Where there is none; the text lists those there are.
    """
    wanted = text.strip().removesuffix(".py")
    for chapter in CHAPTERS:
        if wanted in (str(chapter.number), chapter.name):
            return chapter
    for step in STEPS:
        if step.name == wanted:
            return step
    what = _none(text) if find_receiver(text) is None else f"chapter {wanted} receives"
    raise ValueError(f"{what}: those that send are {_numbers(CHAPTERS)}")


def _numbers(chapters: Iterable[Chapter | Receiver]) -> str:
    return ", ".join(str(chapter.number) for chapter in chapters)


def _none(text: str) -> str:
    """Say that a text is no chapter that has a program, or only some for an array."""
    names = [one.name for one in ARRAY]
    if text.strip().removesuffix(".py") in (str(ARRAY[0].number), *names):
        return (
            f"the programs of chapter {ARRAY[0].number}, {' and '.join(names)}, run by themselves"
        )
    last = max(chapter.number for chapter in (*CHAPTERS, *RECEIVERS))
    if text.strip() in map(str, range(1, last)):
        return f"chapter {text.strip()} has no program"
    return f"there is no chapter {text!r}"


def find_sender(text: str) -> Chapter:
    """Look up what can send to a chapter that receives: also one of an array's senders.

    Parameters
    ----------
    text : str
        As of `find_chapter`; or ``"19"``, or the name of its program that sends.

    Raises
    ------
    ValueError
        Where there is none; the text lists those of `find_chapter`.
    """
    sender = ARRAY[0]
    is_of_array = text.strip().removesuffix(".py") in (str(sender.number), sender.name)
    return sender if is_of_array else find_chapter(text)


def find_receiver(text: str) -> Receiver | None:
    """Look a chapter that receives up by its number or its name; None where there is none.

    Parameters
    ----------
    text : str
        Such as ``"3"`` or ``"tut_3_recv"``.
    """
    wanted = text.strip().removesuffix(".py")
    return next((one for one in RECEIVERS if wanted in (str(one.number), one.name)), None)


def find_program(text: str) -> Chapter | Receiver:
    """Look a chapter up, whether it sends or receives; a ValueError lists all."""
    try:
        return find_receiver(text) or find_chapter(text)
    except ValueError:
        raise ValueError(
            f"{_none(text)}: those that send are {_numbers(CHAPTERS)}, and those that receive"
            f" {_numbers(RECEIVERS)}"
        ) from None


# ---- Exercises ----


@dataclasses.dataclass(frozen=True, slots=True)
class Exercise:
    """What a reader is to write; what its page says, in Markdown, is in ``exercises.diff``."""

    program: str  # the name of the chapter's program, which is the solution

    @property
    def chapter(self) -> Chapter | Receiver:
        """Whose change it is."""
        return find_program(self.program)

    @property
    def task(self) -> str:
        """What is to be written."""
        return " ".join(_exercises()[self.chapter.number][0].split())

    @property
    def hint(self) -> str:
        """What helps to write it."""
        return " ".join(_exercises()[self.chapter.number][1].split())

    @property
    def changes(self) -> str:
        """What makes a skeleton of a chapter's program, as a diff."""
        return _exercises()[self.chapter.number][2]


@functools.cache
def _exercises() -> dict[int, list[str]]:
    """Return of each chapter that has an exercise its task, its hint and its changes."""
    text = Path(__file__).with_name("exercises.diff").read_text(encoding="utf-8")
    parts = re.split(r"(?m)^=== chapter_(\d+)\n", text)[1:]
    pairs = zip(parts[::2], parts[1::2], strict=True)
    return {int(number): part.split("\n\n", 2) for number, part in pairs}


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
        return find_sender(self.program)


@dataclasses.dataclass(frozen=True, slots=True)
class ReceiverExercise(Exercise):
    """One whose program receives."""

    counts: bool = True  # whether it says at the end how many heaps it has received
    gathers: bool = False  # whether it may print a line for several heaps

    @property
    def chapter(self) -> Receiver:
        found = find_receiver(self.program)
        assert found is not None
        return found


#: The exercises of the chapters that send, in their order.
EXERCISES = (
    SenderExercise("tut_2_send", 10, is_random=True, is_limited=True),
    SenderExercise("tut_4_send_perf", 64, is_random=True),
    SenderExercise("tut_5_send_pipeline", 2048),
    SenderExercise("tut_6_send_pktsize", 4096),
    SenderExercise("tut_8_send_reuse_memory", 4096, 64 << 20),
    SenderExercise("tut_10_send_reuse_heaps", 512, 8192),
    SenderExercise("tut_11_send_batch_heaps", 4096, 8192),
    SenderExercise("tut_13_send_hot", 4096, 8192),
    SenderExercise("tut_14_send_many_streams", 8192),
    SenderExercise("tut_15_send_zero_copy", 4096, has_ceiling=False),
    SenderExercise("tut_16_send_equal_packets", 4096, 16384, has_ceiling=False),
    SenderExercise("tut_19_send_corner_turn", 512, is_limited=True),
)

#: Those of the chapters that receive, in their order.
RECEIVING = (
    ReceiverExercise("tut_3_recv", counts=False),
    ReceiverExercise("tut_7_recv_power"),
    ReceiverExercise("tut_9_recv_memory_pool"),
    ReceiverExercise("tut_12_recv_chunks", gathers=True),
    ReceiverExercise("tut_17_recv_hot"),
    ReceiverExercise("tut_18_recv_many_sockets"),
)


if __name__ == "__main__":
    print(*(one.name for one in PROGRAMS), *(one.name for one in (*RECEIVERS, *ARRAY)), sep="\n")
