# SPDX-License-Identifier: BSD-3-Clause
"""What tests share. Importing it makes the harness importable, but not the folders beside it."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

#: The repository.
ROOT = Path(__file__).parent.parent.parent


def load(name: str, path: str) -> ModuleType:
    """Import a file of the repository, from a folder that is on no path, by a name."""
    spec = importlib.util.spec_from_file_location(name, ROOT / path)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


if "bench" not in sys.modules:
    load("bench", "bench/__init__.py")
