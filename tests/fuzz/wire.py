# SPDX-License-Identifier: BSD-3-Clause
"""Fuzz the dissector with libFuzzer, by atheris: ``fuzz_wire.py -max_total_time=30``.

Whatever follows a SPEAD header, the dissector's rows cover every byte once, in order.
"""

import sys

import atheris

with atheris.instrument_imports(include=["spead_tutorial.wire"]):
    from spead_tutorial import wire


def one_input(data: bytes) -> None:
    try:
        rows = wire.dissect(data)
    except wire.WireError:
        assert len(data) < 8 or data[:2] != b"\x53\x04"
        return
    assert b"".join(row.raw for row in rows) == data
    wire.format_table(rows)


atheris.Setup(sys.argv, one_input)
atheris.Fuzz()
