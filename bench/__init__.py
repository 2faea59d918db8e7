# SPDX-License-Identifier: BSD-3-Clause
"""Measurements that need the repository, run from it: ``python -m bench``."""

import sys
from pathlib import Path

# What is measured is the installed package; the folder of its source, which Python would find
# first here, has no compiled core.
_ROOT = Path(__file__).resolve().parent.parent
sys.path[:] = [entry for entry in sys.path if Path(entry).resolve() != _ROOT]
