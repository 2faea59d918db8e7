# SPDX-License-Identifier: BSD-3-Clause
"""The page of an array. It names its workers, as they were called."""

import dataclasses
from pathlib import Path

from spead_tutorial.measure.records import Recording
from spead_tutorial.results import page as pages
from spead_tutorial.results import plots
from spead_tutorial.results.account import Account

_DRAWN = "The share of its packets that each pair is missing"


def page(recording: Recording, answer: str = "") -> str:
    """Return the page of a record, with what a search has found."""
    account = Account.of(recording)
    svgs = []
    if account.pairs:
        picture = dataclasses.replace(plots.matrix(recording), title=_DRAWN, subtitle="")
        svgs = [plots.render(picture, theme).decode() for theme in (plots.LIGHT, plots.DARK)]
    return pages.page(
        Path(__file__).with_name("array.html.jinja"),
        recording.header,
        svgs,
        title=account.verdict,
        failures=[*account.failures, *["it was interrupted"] * account.measured.interrupted],
        again=recording.header.settings["drawn_by"],
        account=account,
        answer=answer,
    )
