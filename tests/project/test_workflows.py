# SPDX-License-Identifier: BSD-3-Clause
"""What builds a release elsewhere has the versions that stand here."""

import re
import tomllib

import pytest

from support import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def test_every_wheel_is_built_by_a_job_for_each_python():
    yaml = pytest.importorskip("yaml")
    workflow = (ROOT / ".github" / "workflows" / "release.yml").read_text()
    job = yaml.safe_load(workflow)["jobs"]["wheels"]
    configured = PROJECT["tool"]["cibuildwheel"]
    environments = [step.get("env", {}) for step in job["steps"]]
    (asked,) = (one["CIBW_BUILD"] for one in environments if "CIBW_BUILD" in one)
    systems = job["strategy"]["matrix"]["system"]
    built = [asked.replace("${{ matrix.system }}", system) for system in systems]
    assert built == configured["build"]
    (versions,) = {one.partition("-")[0] for one in built}
    oldest = PROJECT["project"]["requires-python"].removeprefix(">=3.")
    assert re.match(rf"cp3\{{{oldest},[\d,]+\}}", versions)
