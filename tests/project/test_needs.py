# SPDX-License-Identifier: BSD-3-Clause
"""A skipped test tells its reader what to do."""

from types import SimpleNamespace

import pytest

from support.needs import lacking, pytest_runtest_makereport


def outcome(reason: str) -> str:
    """Return what becomes of a test that is skipped for a reason."""
    report = SimpleNamespace(skipped=True, outcome="skipped", longrepr=("x.py", 1, reason))
    hook = pytest_runtest_makereport()
    next(hook)
    with pytest.raises(StopIteration):
        hook.send(report)
    return report.outcome


def test_a_program_that_is_missing_is_named_and_a_skip_without_a_way_out_fails_the_test():
    reason = lacking("c++", "no-such-program")
    assert reason.endswith("no-such-program")
    assert lacking("sh") is None
    for passes in (f"Skipped: {reason}", "Skipped: the kernel has no IPv6", "root may write here"):
        assert outcome(passes) == "skipped"
    assert outcome("Skipped: there is no strace here") == "failed"
