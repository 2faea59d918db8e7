# SPDX-License-Identifier: BSD-3-Clause
"""What builds a release elsewhere has the versions that stand here."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from support import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
RECIPE = ROOT / "recipe" / "recipe.yaml"


def parsed(path: Path) -> Any:
    return pytest.importorskip("yaml").safe_load(path.read_text())


def version() -> str:
    found = re.search(r"^  version: '(.+)',$", (ROOT / "meson.build").read_text(), re.M)
    assert found
    return found[1]


def test_every_wheel_is_built_by_a_job_for_each_python():
    job = parsed(ROOT / ".github" / "workflows" / "release.yml")["jobs"]["wheels"]
    configured = PROJECT["tool"]["cibuildwheel"]
    environments = [step.get("env", {}) for step in job["steps"]]
    (asked,) = (one["CIBW_BUILD"] for one in environments if "CIBW_BUILD" in one)
    systems = job["strategy"]["matrix"]["system"]
    built = [asked.replace("${{ matrix.system }}", system) for system in systems]
    assert built == configured["build"]
    (versions,) = {one.partition("-")[0] for one in built}
    oldest = PROJECT["project"]["requires-python"].removeprefix(">=3.")
    assert re.match(rf"cp3\{{{oldest},[\d,]+\}}", versions)


def test_the_recipe_needs_what_the_package_needs_in_the_same_versions():
    recipe = parsed(RECIPE)
    assert recipe["context"]["version"] == version()
    needs, host = (
        [
            (need if isinstance(need, str) else need["then"]).replace(" ", "")
            for need in recipe["requirements"][when]
            if need != "python"
        ]
        for when in ("run", "host")
    )
    wanted = PROJECT["project"]["dependencies"]
    assert needs == [need.partition(";")[0] for need in wanted]  # without platforms
    assert set(PROJECT["build-system"]["requires"]) <= set(host)


def test_the_recipe_can_be_rendered():
    rattler = pytest.importorskip("rattler_build", reason="pip install 'spead-tutorial[check]'")
    recipe = rattler.Stage0Recipe.from_file(RECIPE)
    (one,) = recipe.render(rattler.VariantConfig({"c_stdlib": ["sysroot"]}))
    assert str(one.recipe.package.version) == version()
