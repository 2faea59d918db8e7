# SPDX-License-Identifier: BSD-3-Clause
"""``python -m bench``: the harness, from the repository."""

from bench.cli import main

main()
