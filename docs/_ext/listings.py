# SPDX-License-Identifier: BSD-3-Clause
"""Programs in every language: names of tabs, what changed between them, downloads, exercises.

    {stage-diff} ONE OTHER      what changed from one program to another, in every language
    {programs} NAME ...         links to whole programs, to be saved
    {exercises}                 a section for each: the task, how to begin, and folded away a hint
                                and a solution; that of chapter 8 has the label ``exercise-8``

Exercises are made of what ``spead-tutorial check`` has, so that the page asks for nothing else.
"""

import difflib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jinja2
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform
from sphinx.util.docutils import SphinxDirective

from spead_tutorial.chapters.catalogue import (
    EXERCISES,
    RECEIVING,
    ReceiverExercise,
    SenderExercise,
)
from spead_tutorial.chapters.exercises import skeleton, solution

ROOT = Path(__file__).resolve().parent.parent.parent
#: What is made of data: HTML, in which text is escaped, and parts of pages in their own markup.
TEMPLATES = jinja2.Environment(
    loader=jinja2.FileSystemLoader(ROOT / "docs" / "_templates"),
    autoescape=jinja2.select_autoescape(["html"]),
)
#: A language, as a page and as Sphinx call it, and where its programs are.
LANGUAGES = {
    "python": ("Python", "spead_tutorial/chapters/{}.py"),
    "c": ("C", "csrc/chapters/{}.c"),
    "cpp": ("C++", "csrc/chapters/cpp/{}.cpp"),
}
_CONTEXT = 2


class StageDiff(SphinxDirective):
    """What changed from one chapter's program to another's, a tab for each language."""

    required_arguments = 2

    def run(self) -> list[nodes.Node]:
        lines = ["::::{tab-set}", ":sync-group: code", ""]
        for language, (name, _) in LANGUAGES.items():
            files = [program_file(program, language) for program in self.arguments]
            for path in files:
                self.env.note_dependency(str(path))
                if not path.is_file():
                    raise self.error(f"there is no program {path.name}")
            lines += [f":::{{tab-item}} {name}", f":sync: {language}", ""]
            lines += ["```diff", *changes(*files), "```", ":::", ""]
        return self.parse_text_to_nodes("\n".join([*lines, "::::"]))


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
    return ROOT / LANGUAGES[language][1].format(program)


def chapter_page(number: int) -> str:
    (page,) = (ROOT / "docs" / "tutorial").glob(f"{number}-*.md")
    return f"/tutorial/{page.name}"


class Exercises(SphinxDirective):
    """What is to be written, and what it may look like."""

    def run(self) -> list[nodes.Node]:
        every: list[SenderExercise | ReceiverExercise] = [*EXERCISES, *RECEIVING]
        every.sort(key=lambda one: one.chapter.number)
        for one in every:
            self.env.note_dependency(str(solution(one)))
        text = exercises(every)
        return self.parse_text_to_nodes(text, allow_section_headings=True)


def exercises(every: Sequence[SenderExercise | ReceiverExercise]) -> str:
    return TEMPLATES.get_template("exercises.jinja").render(
        exercises=every,
        receiving=RECEIVING,
        page=chapter_page,
        changes=changes,
        skeleton=skeleton,
        solution=solution,
    )


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
    app.add_directive("exercises", Exercises)
    app.add_transform(TabNames)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
