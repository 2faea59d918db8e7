# SPDX-License-Identifier: BSD-3-Clause
"""What a program says of its run."""

import dataclasses
import json
from typing import Self

__all__ = ["Report"]


@dataclasses.dataclass(frozen=True, slots=True)
class Report:
    """The JSON object that a program prints."""

    program: str  # name of the program, and one of `spead_tutorial.chapters.catalogue.LANGUAGES`
    language: str
    heaps: int  # heaps of samples; the one that ends the stream is not counted
    # bytes of samples in a heap, and bytes in a packet at most (UDP and IP not counted)
    heap_size: int
    packet_size: int
    payload_bytes: int  # bytes of samples, and bytes of all SPEAD packets
    spead_bytes: int
    packets: int  # as in `spead_tutorial.send.StreamStats`
    errors: int
    elapsed_ns: int  # time from the first heap to the last, in ns
    cpu_user_ns: int  # CPU time of the process meanwhile, in ns
    cpu_system_ns: int
    page_faults: int  # what the kernel counted of the process meanwhile
    context_switches: int
    # as in `spead_tutorial.send.StreamStats`; None where a program does not know them, as the
    # peer's
    messages: int | None = None
    send_calls: int | None = None
    waits: int | None = None
    looking_ns: int | None = None
    waiting_looking_ns: int | None = None
    # the part of that CPU time that the program's own thread used; the rest is the other
    # threads', of which the stream's is one
    program_cpu_ns: int | None = None
    chapter: int = 0  # the chapter's number; 0 for what is no chapter's program
    random: bool = False  # whether its samples were random
    streams: int = 1  # how many streams sent at once; the counts are those of all of them
    # as in `spead_tutorial.send.StreamStats`; None where it does not know them
    zero_copy_messages: int | None = None
    zero_copy_copied: int | None = None

    @classmethod
    def parse(cls, output: str) -> Self | None:
        """Read what a program printed."""
        try:
            claims = json.loads(output)
            known = [field.name for field in dataclasses.fields(cls) if field.name in claims]
            return cls(**{name: claims[name] for name in known})
        except (ValueError, TypeError):
            return None
