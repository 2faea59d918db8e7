# SPDX-License-Identifier: BSD-3-Clause
"""What a program says of its run."""

import dataclasses
import json
from typing import Self

__all__ = ["Report"]


@dataclasses.dataclass(frozen=True, slots=True)
class Report:
    """The JSON object that a program prints.

    Parameters
    ----------
    program, language : str
        Name of the program, and one of `spead_tutorial.catalogue.LANGUAGES`.
    heaps : int
        Heaps of samples; the one that ends the stream is not counted.
    heap_size, packet_size : int
        Bytes of samples in a heap, and bytes in a packet at most (UDP and IP not counted).
    payload_bytes, spead_bytes : int
        Bytes of samples, and bytes of all SPEAD packets.
    packets, errors : int
        As in `spead_tutorial.send.StreamStats`.
    elapsed_ns : int
        Time from the first heap to the last, in ns.
    cpu_user_ns, cpu_system_ns : int
        CPU time of the process meanwhile, in ns.
    page_faults, context_switches : int
        What the kernel counted of the process meanwhile.
    messages, send_calls, waits, looking_ns, waiting_looking_ns : int or None
        As in `spead_tutorial.send.StreamStats`; None where a program
        does not know them, as the peer's.
    program_cpu_ns : int or None
        The part of that CPU time that the program's own thread used; the rest is the other
        threads', of which the stream's is one.
    chapter : int
        The chapter's number; 0 for what is no chapter's program.
    random : bool
        Whether its samples were random.
    streams : int
        How many streams sent at once; the counts are those of all of them.
    zero_copy_messages, zero_copy_copied : int or None
        As in `spead_tutorial.send.StreamStats`; None where it does not know them.
    """

    program: str
    language: str
    heaps: int
    heap_size: int
    packet_size: int
    payload_bytes: int
    spead_bytes: int
    packets: int
    errors: int
    elapsed_ns: int
    cpu_user_ns: int
    cpu_system_ns: int
    page_faults: int
    context_switches: int
    messages: int | None = None
    send_calls: int | None = None
    waits: int | None = None
    looking_ns: int | None = None
    waiting_looking_ns: int | None = None
    program_cpu_ns: int | None = None
    chapter: int = 0
    random: bool = False
    streams: int = 1
    zero_copy_messages: int | None = None
    zero_copy_copied: int | None = None

    @classmethod
    def parse(cls, output: str) -> Self | None:
        """Read what a program printed.

        Parameters
        ----------
        output : str
            What it wrote on its standard output.

        Returns
        -------
        Report or None
            None where that is no such object.
        """
        try:
            claims = json.loads(output)
            known = [field.name for field in dataclasses.fields(cls) if field.name in claims]
            return cls(**{name: claims[name] for name in known})
        except (ValueError, TypeError):
            return None
