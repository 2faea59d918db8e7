# SPDX-License-Identifier: BSD-3-Clause
"""Build the site as it is published, in all its versions: ``publish.py URL FOLDER [--tags N]``.

That of this tree becomes ``FOLDER/latest``, and those of the newest N tags ``FOLDER/TAG``. Beside
them are a page that leads to the latest, one for addresses where there is nothing, and the list
that the pages' switch between versions reads.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from urllib.parse import urlsplit

LATEST, LIST = "latest", "versions.json"
FIRST = Path(__file__).resolve().parent.parent / "docs" / "_templates" / "first.html"


def main() -> None:
    parser = argparse.ArgumentParser(
        description="Build the site as it is published, in all its versions.",
        epilog="Example: publish.py https://example.org/spead_tutorial build/published --tags 3",
    )
    parser.add_argument("url", help="the address at which the folder will be")
    parser.add_argument("folder", type=Path, help="what to make; it is emptied first")
    parser.add_argument("--tags", type=int, default=0, metavar="N", help="the newest N tags, too")
    given = parser.parse_args()
    url = given.url.rstrip("/") + "/"
    if not urlsplit(url).netloc:
        parser.error(f"{given.url} is no whole address: say https://example.org/spead_tutorial")
    empty(given.folder)
    build(Path.cwd(), url, given.folder / LATEST)
    tags = newest(given.tags)
    for tag in tags:
        build_tag(tag, url, given.folder / tag)
    finish(given.folder, url, [LATEST, *tags])


def empty(folder: Path) -> None:
    """Make a folder anew, if nothing is lost by that."""
    if folder.exists() and any(folder.iterdir()) and not (folder / LIST).exists():
        sys.exit(f"publish: {folder} has something else in it: name another folder, or remove it")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)


def newest(count: int) -> list[str]:
    """Return the tags of the newest versions; who wants none needs no git."""
    if not count:
        return []
    command = ["git", "tag", "--list", "v*", "--sort=-version:refname"]
    listed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return listed.split()[:count]


def build_tag(tag: str, url: str, target: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder, "tree")
        worktree = ["git", "worktree"]
        subprocess.run([*worktree, "add", "--quiet", "--detach", tree, tag], check=True)
        try:
            build(tree, url, target)
        finally:
            subprocess.run([*worktree, "remove", "--force", tree], check=True)


def build(tree: Path, url: str, target: Path) -> None:
    """Build what a tree says, as ``make docs`` does there; it is told its address."""
    environment = os.environ | {"SPEAD_TUTORIAL_SITE_URL": f"{url}{target.name}/"}
    with tempfile.TemporaryDirectory() as folder:
        command = ["make", "-C", tree, "docs", f"BUILD={folder}"]
        if subprocess.run(command, env=environment, check=False).returncode:
            sys.exit(f"publish: {target.name} could not be built: what make docs said is above")
        shutil.move(Path(folder, "site"), target)


def finish(folder: Path, url: str, names: list[str]) -> None:
    """Write what is beside the versions. In the list, addresses are good for any host."""
    path = urlsplit(url).path
    versions = [{"name": name, "version": name, "url": f"{path}{name}/"} for name in names]
    (folder / LIST).write_text(json.dumps(versions, indent=1))
    (folder / "index.html").write_text(FIRST.read_text().format(latest=LATEST, url=url))
    shutil.copy(folder / LATEST / "404.html", folder)


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
