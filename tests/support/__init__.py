# SPDX-License-Identifier: BSD-3-Clause
"""What tests share. Importing it makes the harness importable, but not the folders beside it."""

import importlib.util
import sys
from pathlib import Path

#: The repository.
ROOT = Path(__file__).parent.parent.parent

if "bench" not in sys.modules:
    spec = importlib.util.spec_from_file_location("bench", ROOT / "bench" / "__init__.py")
    assert spec is not None
    assert spec.loader is not None
    sys.modules["bench"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(sys.modules["bench"])
