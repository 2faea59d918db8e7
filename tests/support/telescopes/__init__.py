# SPDX-License-Identifier: BSD-3-Clause
"""A program of a kind that telescopes run, written for spead2, and run with either library."""

import functools
from pathlib import Path
from types import ModuleType
from typing import Any

LIBRARIES = ("spead2", "spead_tutorial")


@functools.cache
def program(name: str, library: str) -> Any:
    """Return a program of this folder as a module, with one word of it changed."""
    path = Path(__file__).with_name(f"{name}.py")
    module = ModuleType(f"{name}_with_{library}")
    code = path.read_text("utf-8").replace("spead2", library)
    exec(compile(code, f"{path} with {library}", "exec"), vars(module))
    return module
