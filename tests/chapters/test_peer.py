# SPDX-License-Identifier: BSD-3-Clause
"""The peer's programs are ours, with spead2 in our package's place, but for what is listed here."""

import re

import pytest

from support import ROOT

PEERS = sorted((ROOT / "spead_tutorial" / "peer").glob("tut_*.py"))

#: What every peer has otherwise: ours, with spead2's name, and the peer's.
EVERYWHERE = [
    # It says what it is.
    ('"""Chapter ', '"""The peer: chapter '),
    ('."""\n\nfrom spead_tutorial_run', ', with spead2."""\n\nfrom spead_tutorial_run'),
    # spead2 is nothing of this project's: its import is sorted elsewhere.
    ("\n\nimport spead2\n", "\nimport spead2\n"),
]
#: Its shorter name makes a call fit in a line.
STREAM = (
    "UdpStream(\n        thread_pool, [(options.host, options.port)], config\n    )\n",
    "UdpStream(thread_pool, [(options.host, options.port)], config)\n",
)
#: spead2 counts no packets: what reports them is the peer's own, and is shown heaps to count.
REPORT = (
    "from spead_tutorial.chapters.report import Options, Usage, parse_options, report\n",
    "from peer_report import report\n"
    "\n"
    "from spead_tutorial.chapters.report import Options, Usage, parse_options\n",
)
ALONE = {
    "tut_8_send_reuse_memory": [
        STREAM,
        REPORT,
        (
            "    await stream.async_send_heap(item_group.get_end())\n"
            "    report(options, [stream.stats], used)\n",
            "    end = item_group.get_end()\n"
            "    await stream.async_send_heap(end)\n"
            '    first_heap = item_group.get_heap(descriptors="all", data="all")\n'
            '    heap = item_group.get_heap(descriptors="none", data="all")\n'
            "    report(options, used, first_heap, heap, end)\n",
        ),
    ],
    "tut_10_send_reuse_heaps": [
        STREAM,
        REPORT,
        (
            "    report(options, [stream.stats], used)\n",
            "    report(options, used, states[0].first_heap, states[0].heap, states[0].end)\n",
        ),
    ],
    "tut_11_send_batch_heaps": [
        STREAM,
        (
            f"{REPORT[0]}from spead2.send import GroupMode, HeapReference, HeapReferenceList\n",
            REPORT[1].replace(
                "\n\n",
                "\nfrom spead2.send import GroupMode, HeapReference, HeapReferenceList\n\n",
            ),
        ),
        (
            "        self.end = item_groups[0].get_end()\n",
            "        self.first_heap, self.heap = first_heap, heaps[0]  # to be reported\n"
            "        self.end = item_groups[0].get_end()\n",
        ),
        (
            "    report(options, [stream.stats], used)\n",
            "    report(options, used, batches[0].first_heap, batches[0].heap, batches[0].end)\n",
        ),
    ],
    "tut_14_send_many_streams": [
        (REPORT[0], ""),
        (
            "from spead2.send import GroupMode, HeapReference, HeapReferenceList\n",
            "from peer_report import report\n"
            "from spead2.send import GroupMode, HeapReference, HeapReferenceList\n\n"
            "from spead_tutorial.chapters.report import Options, Usage, parse_options\n",
        ),
        ("; together they send one sequence of heaps, with", ", one sequence of heaps, with"),
        (
            "        self.first_heap =",
            "        self.heap = heaps[0]  # to be reported\n        self.first_heap =",
        ),
        # Each stream needs a thread of its own: it has none that sends where it is called.
        (
            "UdpStream(None, [(options.host, options.port)], config)",
            "UdpStream(\n            spead2.ThreadPool(), [(options.host, options.port)], config\n"
            "        )",
        ),
        (
            "    report(options, [sender.stream.stats for sender in senders], used)\n",
            "    report(options, used, senders[0].first_heap, senders[0].heap, senders[0].end)\n",
        ),
    ],
}


@pytest.mark.parametrize("peer", PEERS, ids=lambda path: path.stem)
def test_a_peers_program_is_ours_but_for_what_must_differ(peer):
    text = (ROOT / "spead_tutorial" / "chapters" / peer.name).read_text()
    text = re.sub(r"\bspead_tutorial\b(?!\.chapters)", "spead2", text)
    for ours, theirs in [*EVERYWHERE, *ALONE[peer.stem]]:
        assert text.count(ours) == 1, ours
        text = text.replace(ours, theirs)
    assert peer.read_text().splitlines() == text.splitlines()
