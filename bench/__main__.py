# SPDX-License-Identifier: BSD-3-Clause
"""``python -m bench``: the harness, from the repository."""

from spead_tutorial_run import start

start("python -m bench", "bench.cli")
