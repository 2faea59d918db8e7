# SPDX-License-Identifier: BSD-3-Clause
"""The three standard streams as a command needs them, however it was started."""

import codecs
import io
import os
import sys

from spead_tutorial.lab.streams import open_missing

#: What is written in the place of characters that a stream has not.
_OTHER_WORDS = {"→": "->", "—": "-", "\N{EN DASH}": "-", "✓": "y", "✗": "N", "⁶": "^6", "⁹": "^9"}
_ASCII = "plain_ascii"


def prepare() -> None:
    """Let a command write whatever it has to say, and start programs."""
    _open_missing()
    codecs.register_error("other words", _in_other_words)
    codecs.register(_plain_ascii)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            ascii_only = codecs.lookup(stream.encoding).name == "ascii"
            stream.reconfigure(encoding=_ASCII if ascii_only else None, errors="other words")


def _open_missing() -> None:
    """Open ``/dev/null`` in place of each stream that the process began without."""
    open_missing()
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115 (for good)


def _in_other_words(error: UnicodeError) -> tuple[str, int]:
    """Write characters that cannot be encoded in a way that can be read."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    cannot = error.object[error.start : error.end]
    escaped = (c.encode("ascii", "backslashreplace").decode("ascii") for c in cannot)
    words = (_OTHER_WORDS.get(c, code) for c, code in zip(cannot, escaped, strict=True))
    return "".join(words), error.end


def _plain_ascii(name: str) -> codecs.CodecInfo | None:
    """Give ASCII another name: click writes UTF-8 into streams that go by its own."""
    if name != _ASCII:
        return None
    ascii_only = codecs.lookup("ascii")
    return codecs.CodecInfo(
        ascii_only.encode,
        ascii_only.decode,
        incrementalencoder=ascii_only.incrementalencoder,
        incrementaldecoder=ascii_only.incrementaldecoder,
        name=_ASCII,
    )
