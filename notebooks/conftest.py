# SPDX-License-Identifier: BSD-3-Clause
"""How nbval runs the notebooks, the only place that knows: ``make test-notebooks``.

Cells that say what is are compared with what is stored; cells that say how fast have the tag
``nbval-ignore-output``. Less is measured than for what is stored, unless the environment has
``SPEAD_TUTORIAL_QUICK=0``.
"""

import functools
import importlib
import os
import sys
import tempfile

import pytest

from spead_tutorial.lab import probe

# What nbval imports builds a grammar of addresses of the web, for seconds, and does without where
# there is none. So nbval is loaded here, after that, if pytest has not done so by itself.
if "nbval.plugin" not in sys.modules:
    sys.modules["rfc3987_syntax"] = None  # type: ignore[assignment]
    pytest_plugins = ["nbval.plugin"]


def pytest_configure(config: pytest.Config) -> None:
    """Give the kernels an environment that is the same whatever their user has set up."""
    os.environ.setdefault("SPEAD_TUTORIAL_QUICK", "1")
    os.environ.setdefault("PYDEVD_DISABLE_FILE_VALIDATION", "1")
    folder = tempfile.TemporaryDirectory()
    config.add_cleanup(folder.cleanup)
    os.environ["IPYTHONDIR"] = folder.name
    os.environ["XDG_RUNTIME_DIR"] = folder.name  # workers do not wait for each other's measurements
    # Ports are chosen before a kernel takes them, and of two workers one can lose its own to the
    # other: the kernel then lives on and never answers. Sockets in a folder are nobody else's.
    kernel = importlib.import_module("nbval.kernel")
    kernel.KernelManager = functools.partial(
        kernel.KernelManager, transport="ipc", ip=f"{folder.name}/kernel"
    )


def pytest_collectstart(collector: pytest.Collector) -> None:
    """Leave out of the comparison what nbval compares though it is a picture."""
    if hasattr(collector, "skip_compare"):
        collector.skip_compare += ("image/svg+xml",)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip where there can be no lab: the facts that are stored are those of one."""
    reason = probe().reason
    if reason is not None:
        for item in items:
            if item.path.suffix == ".ipynb":
                item.add_marker(pytest.mark.skip(reason=f"no lab here: {reason}"))
