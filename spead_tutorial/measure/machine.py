# SPDX-License-Identifier: BSD-3-Clause
"""Facts of the machine, and the header of a record."""

import datetime
from collections.abc import Mapping
from typing import Any

from spead_tutorial import doctor
from spead_tutorial.records import Header

__all__ = ["header"]


def header(
    experiment: str,
    lab: dict[str, Any],
    settings: dict[str, Any],
    versions: Mapping[str, str | None] | None = None,
) -> Header:
    """Return what a record says of where, when and with what its samples are taken: here and now.

    Parameters
    ----------
    experiment : str
        What is measured.
    lab : dict
        Facts of the place.
    settings : dict
        What the experiment was told.
    versions : mapping, optional
        Of further software.
    """
    return Header(
        experiment=experiment,
        time=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        machine=doctor.machine_facts(),
        lab=lab,
        settings=settings,
        versions=doctor.versions() | dict(versions or {}),
        revision=doctor.revision(),
    )
