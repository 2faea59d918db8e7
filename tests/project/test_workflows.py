# SPDX-License-Identifier: BSD-3-Clause
"""What runs elsewhere, in CI, as a release or in a container, asks for what there is here.

That its files are well formed is for the linters.
"""

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from spead_tutorial.chapters.catalogue import LANGUAGES
from support import ROOT

WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
RECIPE = ROOT / "recipe" / "recipe.yaml"


def parsed(path: Path) -> Any:
    return pytest.importorskip("yaml").safe_load(path.read_text())


def version() -> str:
    found = re.search(r"^  version: '(.+)',$", (ROOT / "meson.build").read_text(), re.M)
    assert found
    return found[1]


@pytest.mark.parametrize("path", [*WORKFLOWS, ROOT / ".devcontainer" / "devcontainer.json"])
def test_every_make_target_that_is_asked_for_exists(path):
    makefile = (ROOT / "Makefile").read_text()
    asked = re.findall(r"\bmake ([\w-]+)", path.read_text())
    assert asked or "run: .ci/run" in path.read_text()
    assert [name for name in asked if not re.search(rf"^{name}:", makefile, re.M)] == []


def test_the_fresh_machine_has_what_the_readme_asks_for_and_runs_both_commands():
    job = parsed(ROOT / ".github" / "workflows" / "ci.yml")["jobs"]["fresh-machine"]
    typed = "\n".join(step.get("run", "") for step in job["steps"])
    asked = re.search(r"^sudo apt install (.*?) +#", (ROOT / "README.md").read_text(), re.M)
    installed = re.search(r"apt-get install -y (.*)$", typed, re.M)
    assert asked
    assert installed
    assert set(installed[1].split()) == set(asked[1].split())
    assert re.findall(r'su reader -c "(.*?)"', typed) == ["make tour", "make test"]


def test_only_the_job_that_publishes_may_prove_who_it_is_and_only_for_a_tag():
    workflow = parsed(ROOT / ".github" / "workflows" / "release.yml")
    assert workflow["permissions"] == {"contents": "read"}
    jobs = workflow["jobs"]
    assert [name for name, job in jobs.items() if "permissions" in job] == ["publish"]
    assert "refs/tags/" in jobs["publish"]["if"]
    assert set(jobs["publish"]["needs"]) == set(jobs) - {"publish"}


def test_every_wheel_is_built_by_a_job_for_each_python_and_tried_with_what_exists():
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
    paths = re.findall(r"\{project\}/(\S+)", " ".join(configured["test-command"]))
    assert paths
    assert [path for path in paths if not (ROOT / path).is_file()] == []


def test_the_recipe_needs_what_the_package_needs_and_tries_every_language():
    recipe = parsed(RECIPE)
    assert recipe["context"]["version"] == version()
    needs, host = (
        [need.replace(" ", "") for need in recipe["requirements"][when] if need != "python"]
        for when in ("run", "host")
    )
    assert needs == PROJECT["project"]["dependencies"]
    assert set(PROJECT["build-system"]["requires"]) <= set(host)
    assert recipe["about"]["summary"] == PROJECT["project"]["description"]
    (script,) = [test["script"] for test in recipe["tests"] if "script" in test]
    tried = [line for line in script if " run " in line]
    others = [language for language in LANGUAGES if language != "python"]
    assert len(tried) == len(LANGUAGES)
    assert [name for name in others if f"--lang {name} " not in " ".join(tried)] == []


def test_the_recipe_can_be_rendered():
    rattler = pytest.importorskip("rattler_build", reason="pip install 'spead-tutorial[check]'")
    recipe = rattler.Stage0Recipe.from_file(RECIPE)
    (one,) = recipe.render(rattler.VariantConfig({"c_stdlib": ["sysroot"]}))
    assert str(one.recipe.package.version) == version()


def test_a_development_container_may_make_a_lab():
    container = json.loads((ROOT / ".devcontainer" / "devcontainer.json").read_text())
    said = (ROOT / "docs" / "how-to" / "containers.md").read_text()
    assert container["capAdd"]
    assert all(f"--cap-add {name}" in said for name in container["capAdd"])


def test_binder_installs_an_extra_that_there_is():
    extras = re.findall(r"\.\[(\w+)\]", (ROOT / ".binder" / "postBuild").read_text())
    assert extras
    assert set(extras) <= set(PROJECT["project"]["optional-dependencies"])
