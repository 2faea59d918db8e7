# SPDX-License-Identifier: BSD-3-Clause
"""Listings in every language: names of tabs, what changed between programs, and downloads.

``stage-diff`` shows what changed from one program to another, in every language:

    ```{stage-diff} tut_6_send_pktsize tut_8_send_reuse_memory
    ```

``programs`` links to whole programs, to be read on disk:

    ```{programs} tut_8_send_reuse_memory
    ```
"""

import difflib
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform
from sphinx.util.docutils import SphinxDirective

from spead_tutorial.chapters.catalogue import PROGRAMS, RECEIVERS

ROOT = Path(__file__).resolve().parent.parent.parent
#: A language, as a page and as Sphinx call it, and where its programs are.
_ALL = {
    "python": ("Python", "spead_tutorial/chapters/{}.py"),
    "c": ("C", "csrc/chapters/{}.c"),
    "cpp": ("C++", "csrc/chapters/cpp/{}.cpp"),
}
_CONTEXT = 2


def _is_whole(language: str) -> bool:
    """Whether every program is there in a language; one that is not whole yet is not shown."""
    names = [*(one.name for one in PROGRAMS), *(one.name for one in RECEIVERS)]
    return all((ROOT / _ALL[language][1].format(name)).is_file() for name in names)


#: Those that pages show.
LANGUAGES = {language: words for language, words in _ALL.items() if _is_whole(language)}


class StageDiff(SphinxDirective):
    """What changed from one chapter's program to another's, a tab for each language."""

    required_arguments = 2

    def run(self) -> list[nodes.Node]:
        before, after = self.arguments
        lines = ["::::{tab-set}", ":sync-group: code", ""]
        for language, (name, _) in LANGUAGES.items():
            changes = self._changes(before, after, language)
            lines += [f":::{{tab-item}} {name}", f":sync: {language}", ""]
            lines += ["```diff", *changes, "```", ":::", ""]
        return self.parse_text_to_nodes("\n".join([*lines, "::::"]))

    def _changes(self, before: str, after: str, language: str) -> list[str]:
        files = (program_file(before, language), program_file(after, language))
        for path in files:
            self.env.note_dependency(str(path))
            if not path.is_file():
                raise self.error(f"there is no program {path.name}")
        return changes(*files)


def changes(before: Path, after: Path) -> list[str]:
    """Return the lines of a unified diff, which calls both files by their names alone."""
    old, new = (path.read_text().splitlines() for path in (before, after))
    names = (before.name, after.name)
    return list(difflib.unified_diff(old, new, *names, lineterm="", n=_CONTEXT))


class Programs(SphinxDirective):
    """Links to programs in every language, to be saved."""

    required_arguments = 1
    optional_arguments = 20

    def run(self) -> list[nodes.Node]:
        up = "../" * (self.env.docname.count("/") + 1)
        links = [
            f"{{download}}`{path.name} <{up}{path.relative_to(ROOT)}>`"
            for program in self.arguments
            for path in (program_file(program, language) for language in LANGUAGES)
        ]
        return self.parse_text_to_nodes(f"Save the whole programs: {', '.join(links)}.")


def program_file(program: str, language: str) -> Path:
    """Return where a program is."""
    return ROOT / LANGUAGES[language][1].format(program)


def chapter_page(number: int) -> str:
    """Return the address of a chapter's page."""
    (page,) = (ROOT / "docs" / "tutorial").glob(f"{number}-*.md")
    return f"/tutorial/{page.name}"


class TabNames(SphinxTransform):
    """Call the tabs of listings Python, C and C++, rather than PYTHON, C and CPP."""

    default_priority = 800

    def apply(self, **kwargs: Any) -> None:
        for label in self.document.findall(nodes.rubric):
            language = label.get("sync_id")
            if label.get("sync_group") == "code" and language in LANGUAGES:
                label.children = [nodes.Text(LANGUAGES[language][0])]


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("stage-diff", StageDiff)
    app.add_directive("programs", Programs)
    app.add_transform(TabNames)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
