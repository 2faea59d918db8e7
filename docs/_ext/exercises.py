# SPDX-License-Identifier: BSD-3-Clause
"""All exercises, a section each: the task, how to begin, and folded away a hint and a solution.

    ```{exercises}
    ```

All of it comes from what ``spead-tutorial check`` has, so that the page cannot ask for anything
else. The section of chapter 8 has the label ``exercise-8``.
"""

from docutils import nodes
from listings import changes, chapter_page
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from spead_tutorial.chapters.catalogue import (
    EXERCISES,
    RECEIVING,
    ReceiverExercise,
    SenderExercise,
)
from spead_tutorial.chapters.exercises import skeleton, solution


class Exercises(SphinxDirective):
    """What is to be written, and what it may look like."""

    def run(self) -> list[nodes.Node]:
        every: list[SenderExercise | ReceiverExercise] = [*EXERCISES, *RECEIVING]
        every.sort(key=lambda one: one.chapter.number)
        for one in every:
            self.env.note_dependency(str(solution(one)))
        text = "\n".join(line for one in every for line in section(one))
        return self.parse_text_to_nodes(text, allow_section_headings=True)


def section(exercise: SenderExercise | ReceiverExercise) -> list[str]:
    """Return the lines of an exercise's section."""
    number, title = exercise.chapter.number, exercise.chapter.title
    head = f"## Chapter {number}: {title[0].lower()}{title[1:]}"
    task = f"{exercise.task} [Chapter {number}]({chapter_page(number)}) explains it."
    command = f"spead-tutorial check {number}"
    mine = f"my_{'receiver' if isinstance(exercise, ReceiverExercise) else 'sender'}.py"
    begin = [f"{command} --skeleton > {mine}", f"{command} {mine}"]
    hint = [":::{dropdown} Hint", exercise.hint, ":::"]
    diff = changes(skeleton(exercise), solution(exercise))
    answer = [":::{dropdown} Solution", "```diff", *diff, "```", ":::"]
    return [
        f"(exercise-{number})=",
        head,
        task,
        "",
        "```sh",
        *begin,
        "```",
        "",
        *hint,
        *answer,
        "",
    ]


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("exercises", Exercises)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
