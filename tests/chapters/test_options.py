# SPDX-License-Identifier: BSD-3-Clause
"""Options of all programs: twins have the same, as the catalogue says, and refuse the same."""

import json
import re
from functools import partial

import pytest

from spead_tutorial.chapters import receiving, report
from spead_tutorial.chapters.catalogue import ARRAY, PROGRAMS, RECEIVERS, Chapter, Receiver
from spead_tutorial.measure.programs import built, program
from support.programs import cases, each_language, ended, name_of, refusal

EVERY = {one.name: one for one in (*PROGRAMS, *RECEIVERS, *ARRAY)}
FOUR, FIVE, TEN, MANY_STREAMS, ZERO_COPY, POOL, SOCKETS, SENDER, RECEIVER = (
    next(name for name in EVERY if name.startswith(begin))
    for begin in ("tut_4_", "tut_5_", "tut_10_", "tut_14_", "tut_15_", "tut_9_", "tut_18_",
                  "tut_19_send", "tut_19_recv")
)  # fmt: skip
#: Between them they take every option.
TOGETHER_ALL = (FIVE, MANY_STREAMS, ZERO_COPY, POOL, SENDER, RECEIVER)
LONG = {"-H": "--heap-size", "-b": "--buffers", "-s": "--sockets"}  # of receivers


def options_of(one: Chapter | Receiver, language: str) -> dict[str, str]:
    """Options in a help text: each with what it says of it, the default included."""
    before = ["-t", "60"] if isinstance(one, Receiver) and language == "c" else []
    done = ended([*program(one.name, language), *before, "--help"])
    assert (done.returncode, done.stderr) == (0, "")
    assert f"example: {one.name}" in done.stdout
    option = r"(?:-\w(?: [A-Z]+)?, )?(--?[\w-]+|host|port|\[?HOST:\]?PORT)(?: [A-Z/]+)?"
    options = re.findall(rf"^  {option}\s+(\S.*(?:\n {{8,}}\S.*)*)", done.stdout, re.M)
    found = {name: " ".join(text.split()) for name, text in options}
    found.pop("--help", None)
    return found


def expected(one: Chapter | Receiver) -> set[str]:
    in_array = {"--senders", "--interface"} if "a" in one.accepted else set()
    if isinstance(one, Receiver):
        own = {LONG[flag] for flag in one.flags} | in_array | ({"--lossy"} if in_array else set())
        return {"-t", "--json", "--text", "[HOST:]PORT"} | own
    if in_array:
        return {*one.flags, *in_array, "--json", "--sender", "--rate", "--ttl", "HOST:PORT"}
    return {*one.flags, "--json", *(("host", "port") if one.takes_destination else ())}


@pytest.mark.parametrize(
    "one",
    cases(((one,) for one in EVERY.values()), lambda one: one.name in TOGETHER_ALL),
    ids=name_of,
)
def test_all_twins_have_the_same_options_with_the_catalogues_defaults_and_an_example(one):
    first, *others = (options_of(one, language) for language in built())
    assert others == [first] * len(others)
    assert first.keys() == expected(one)
    if isinstance(one, Chapter):
        sizes = (one.heaps, one.heap_size, one.packet_size or "the route's")
        for flag, default in zip(("-n", "-H", "-p"), sizes, strict=True):
            assert f"({default})" in first.get(flag, f"({default})")
    if one.name == POOL:
        assert first["--heap-size"] == "bytes of samples in a heap (1048576)"
        assert "heaps that the pool has memory for (6); 0 for none" in first["--buffers"]


BYTES = "such as 8192, 8KiB or 1MiB"
NO_NUMBERS = ["0", str(1 << 63), "9" * 30, "x", "+5", " 5", "1_000", ""]
NO_SIZES = ["0KiB", "8K", "KiB", "8KiBs", "1.5MiB", "8Ki B", f"{1 << 33}GiB", f"{10**19}B"]
NO_CORES = ["0", "a,b", "0,", ",1", "0,1,2", "0, 1", "+1,0", "0,12345", ""]
#: Who refuses, for which option or place, which words, and in which words it does.
REFUSED = [
    (TEN, "-n", [*NO_NUMBERS, "8KiB"], "a whole number from 1 to 2^63-1"),
    *((TEN, flag, [*NO_NUMBERS, *NO_SIZES], f"a number of bytes from 1 to 2^63-1, {BYTES}")
      for flag in ("-H", "-p")),
    (FOUR, "-c", NO_CORES, "two cores, such as 0,1"),
    (MANY_STREAMS, "-s", ["0", "1025", "x", "+5"], "a number from 1 to 1024"),
    (POOL, "", ["0", "65536", "a"], "a number from 1 to 65535"),
    (POOL, "-t", ["0", "nan", "1000001", "a"], "a number of seconds up to 1e6"),
    (POOL, "--heap-size", ["0", "-1", "x", "1M", "1GiB", "1073733633", f"{1 << 63}", ""],
     f"a number of bytes from 1 to 1073733632, {BYTES}"),
    (POOL, "-b", ["-1", "1001", "x", "+5", "9" * 5000], "a whole number from 0 to 1000"),
    (SOCKETS, "-s", ["0", "257", "x"], "a whole number from 1 to 256"),
    (RECEIVER, "--senders", ["0"], "a whole number from 1 to 256"),
    *((SENDER, flag, ["256"], "a whole number from 0 to 255") for flag in ("--sender", "--ttl")),
    (SENDER, "--rate", ["-1", "nan"], "--rate must be a number of MB/s from 0 to 1e6"),
    (SENDER, "", ["8888", ":8888"], "a host and a port"),
]  # fmt: skip
#: The same, in other words than these.
REFUSED_TOGETHER = [
    (RECEIVER, ["127.0.0.1:65535", "--senders=2"],
     "port must be at most 65534, as 2 senders have one each: not 65535"),
    (SENDER, ["--sender=2", "--senders=2", "1.2.3.4:1"],
     "--sender must be less than 2, as many as there are: not 2"),
    (SENDER, ["1.2.3.4:0"], "must be a number from 1 to 65535, not '0'"),
    (POOL, ["127.0.0.1:"], "must be a number from 1 to 65535, not ''"),
]  # fmt: skip


def given(flag: str, text: str) -> list[str]:
    if flag.startswith("--"):
        return [f"{flag}={text}"]
    return [f"{flag}{text}"] if text.startswith("-") or not flag else [flag, text]


def parser(one: Chapter | Receiver) -> partial[object]:
    """What a program in Python parses its options with."""
    if isinstance(one, Chapter):
        return partial(report.parse_options, "", one.accepted, report.Options())
    fields = {"H": "heap_size", "b": "buffers", "s": "sockets", "a": "senders"}
    usual = receiving.ReceiverOptions(**{fields[letter]: 1 for letter in one.accepted})
    return partial(receiving.parse_receiver_options, "", usual)


@each_language
def test_what_options_cannot_be_is_refused(language, monkeypatch, capsys):
    alone = (
        (name, given(flag, text), f"{words}, not '{text}'")
        for name, flag, texts, words in REFUSED
        for text in texts
    )
    for name, arguments, words in (*alone, *REFUSED_TOGETHER):
        parse = parser(EVERY[name]) if language == "python" else None
        rest = ["1.2.3.4:1"] if name == SENDER else []
        rest += ["127.0.0.1", "9"] if EVERY[name] in PROGRAMS else []
        argv = [*program(name, language), *arguments, *rest]
        said = refusal(argv, parse, monkeypatch, capsys)
        said = said.replace("argument ", "").replace(": must", " must")
        assert said.endswith(words), (arguments, said)


#: Numbers of bytes as pages write them, and as strangers may.
SIZES = {"8KiB": 8192, "1MiB": 1 << 20, "9kB": 9000, "16 KiB": 1 << 14, "2mb": 2 * 10**6,
         "64KIB": 1 << 16, "8192B": 8192, "00008192": 8192}  # fmt: skip


@each_language
def test_a_number_of_bytes_may_have_a_unit(language):
    argv = [*program(TEN, language), "--json", "-n", "1"]
    for text, n_bytes in SIZES.items():
        done = ended([*argv, "-H", text, "-p", "1KiB", "127.0.0.1", "9"])
        said = json.loads(done.stdout)
        assert (said["heap_size"], said["packet_size"]) == (n_bytes, 1024), text
