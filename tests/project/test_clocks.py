# SPDX-License-Identifier: BSD-3-Clause
"""What waits and what counts seconds goes by clocks that nobody sets, so that none can jump."""

import re

from support import ROOT

SET_BY_SOMEBODY = r"REALTIME|CLOCK_TAI|gettimeofday|timespec_get\(|\btime\(NULL|_timedlock|sem_time"


def test_the_core_and_the_programs_ask_no_clock_that_can_be_set():
    core = ROOT / "csrc"
    sources = [one for one in core.rglob("*.[ch]*") if "tests" not in one.relative_to(core).parts]
    text = "".join(path.read_text() for path in sources)
    assert re.findall(SET_BY_SOMEBODY, text) == []
    waited_for = re.findall(r"pthread_cond_timedwait\(&\w+->(\w+)", text)
    with_a_clock = re.findall(r"pthread_cond_init\(&\w+->(\w+), &attr", text)
    assert set(waited_for) == set(with_a_clock) != set()
    assert text.count("pthread_condattr_setclock(&attr, CLOCK_MONOTONIC)") == len(with_a_clock)
