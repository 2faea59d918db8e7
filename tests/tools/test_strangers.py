# SPDX-License-Identifier: BSD-3-Clause
"""Text of strangers, wherever it comes from: no terminal obeys it, and no page or picture does."""

import json
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest

from spead_tutorial import wire
from spead_tutorial.notebook.showing import _PacketTable
from spead_tutorial.tools import tour
from support import captures
from support.bench import write
from support.labs import needs_lab
from support.strangers import HOSTILE, NO_TEXT, obeyed
from support.tours import recorded
from support.typed import Run, Typed, typed

#: Such text as an escape shows it, and what may be a file's name.
SEEN, NAME = "\\u202e", HOSTILE.replace("\0", "") + NO_TEXT
#: What of a record says which of a few things something is.
_WORDS = "record experiment tool time size implementation language program case variant"


def check_harmless(done: Typed) -> str:
    """Check that nothing a command said is obeyed, and return it."""
    said: str = done.stdout + done.stderr
    assert obeyed(said) == []
    assert SEEN in said
    assert "Traceback" not in said
    return said


def spoilt(fact: Any, name: str = "") -> Any:
    """Have each text in a record that may be any be a stranger's."""
    if isinstance(fact, dict):
        return {one: spoilt(value, one) for one, value in fact.items()}
    if isinstance(fact, list):
        return [spoilt(value, name) for value in fact]
    return f"{fact}{HOSTILE}" if isinstance(fact, str) and name not in _WORDS.split() else fact


def test_a_record_can_be_shown_as_a_tour_in_terminal_page_and_picture(here: Run, elsewhere: Path):
    def rates(case, number):
        return None if (case.program, case.language) == ("tut_6_send_pktsize", "c") else 1e9

    path = write(Path("out", tour.RECORDS), recorded(rates))
    lines = [spoilt(json.loads(line)) for line in path.read_text().splitlines()]
    lines[0]["settings"]["without"] = [HOSTILE]
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    done = here("tour", "--output", "out", "--from-record")
    assert done.returncode == 1  # of what failed
    check_harmless(done)
    written = [one for one in Path("out").iterdir() if one.suffix in (".html", ".svg")]
    assert len(written) == 3
    for one in written:
        text = one.read_text()
        assert obeyed(text) == []
        assert SEEN in text
        if one.suffix == ".svg":
            ET.fromstring(text)


def test_a_packet_can_be_shown_in_a_notebook():
    field = wire.Field(0, b"", HOSTILE, HOSTILE, HOSTILE)
    table = _PacketTable(HOSTILE, [field])
    for text in (repr(table), table._repr_html_()):
        assert obeyed(text) == []
        assert text.count(SEEN) == 3


def test_files_may_be_called_anything(here, elsewhere):
    captures.write(Path(f"{NAME}.pcap"), [])
    for path in (f"{NAME}.pcap", f"{NAME}.none", f"{NAME}/x"):
        check_harmless(here("recv", path))
        check_harmless(here("tour", "--from-record", "--output", path))
        check_harmless(here("notebook", "--folder", path))


@needs_lab
@pytest.mark.parametrize(
    "words",
    [
        ("why", "--seconds", "0.1", "--", sys.executable, "{program}"),
        ("check", "4", "{program}"),
        ("check", "3", "{program}"),
        ("lab", "--", "./{program}"),
    ],
    ids=" ".join,
)
def test_a_program_that_is_looked_at_may_say_anything_and_have_any_name(elsewhere, words):
    name = f"my{NAME}.py"
    Path(name).write_text(
        f"import sys\nsys.stderr.write({HOSTILE!r})\nraise OSError({HOSTILE!r})\n"
    )
    done = typed(*(word.replace("{program}", name) for word in words))
    check_harmless(done)
    assert done.returncode != 0
