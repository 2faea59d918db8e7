# SPDX-License-Identifier: BSD-3-Clause
"""The site is published in all its versions: this tree's, and those of tags.

What is made of the real tree is tested by tests/site/browser/test_published.py.
"""

import json
import shutil
import sys
from pathlib import Path

import pytest

from support import ROOT
from support.typed import Typed, run

SCRIPT = ROOT / ".ci" / "publish.py"
URL = "https://example.org/below/spead_tutorial"
#: A site of two pages: what the tree says, and where it was told that it will be.
MAKEFILE = """\
docs:
\tmkdir -p $(BUILD)/site
\tcp words $(BUILD)/site/index.html
\techo "$(SPEAD_TUTORIAL_SITE_URL)" > $(BUILD)/site/404.html
"""

pytestmark = pytest.mark.skipif(not shutil.which("git"), reason="there is no git: apt install git")


def git(tree: Path, *words: str) -> str:
    who = ["-c", "user.name=A", "-c", "user.email=a@example.org"]
    done = run("git", *who, *words, cwd=tree)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A repository of versions 0.9, 0.10 and 0.2, tagged in this order, and a change after them."""
    tree = tmp_path / "tree"
    tree.mkdir()
    git(tree, "init", "--quiet")
    (tree / "Makefile").write_text(MAKEFILE)
    for version in ("v0.9", "v0.10", "v0.2"):
        (tree / "words").write_text(version)
        git(tree, "add", ".")
        git(tree, "commit", "--quiet", "--message", version)
        git(tree, "tag", version)
    (tree / "words").write_text("not yet committed")
    return tree


def published(tree: Path, *words: str) -> Typed:
    return run(sys.executable, SCRIPT, *words, cwd=tree)


def test_this_tree_and_the_newest_tags_are_published_beside_each_other(tree):
    done = published(tree, f"{URL}/", "out", "--tags", "2")
    assert done.returncode == 0, done.stderr
    out = tree / "out"
    said = {page.parent.name: page.read_text() for page in out.glob("*/index.html")}
    assert said == {"latest": "not yet committed", "v0.10": "v0.10", "v0.9": "v0.9"}
    assert (out / "v0.9" / "404.html").read_text() == f"{URL}/v0.9/\n"
    versions = json.loads((out / "versions.json").read_text())
    assert [one["version"] for one in versions] == ["latest", "v0.10", "v0.9"]
    assert versions[1]["url"] == "/below/spead_tutorial/v0.10/"
    assert 'content="0; url=latest/index.html"' in (out / "index.html").read_text()
    assert (out / "404.html").read_text() == f"{URL}/latest/\n"
    # Publishing again leaves nothing of the last time.
    assert published(tree, URL, "out").returncode == 0
    assert [path.name for path in out.iterdir() if path.is_dir()] == ["latest"]


def test_a_version_that_cannot_be_built_is_named_and_leaves_no_tree_behind(tree):
    (tree / "Makefile").write_text("docs:\n\tfalse\n")
    git(tree, "commit", "--quiet", "--all", "--message", "worse")
    git(tree, "tag", "v1.0")
    (tree / "Makefile").write_text(MAKEFILE)
    done = published(tree, URL, "out", "--tags", "1")
    assert done.returncode == 1
    assert "publish: v1.0 could not be built" in done.stderr.splitlines()[-1]
    assert len(git(tree, "worktree", "list").splitlines()) == 1


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        ((URL, "."), 1, "publish: . has something else in it: name another folder"),
        (("spead_tutorial", "out"), 2, "say https://"),
    ],
)
def test_what_cannot_be_is_refused(tree, words, status, said):
    done = published(tree, *words)
    assert (done.returncode, done.stdout) == (status, "")
    assert said in done.stderr.splitlines()[-1]
    assert (tree / "words").exists()
