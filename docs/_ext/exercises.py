# SPDX-License-Identifier: BSD-3-Clause
"""The exercise of a chapter: its task, how to begin, and folded away a hint and a solution.

    ```{exercise} 8
    ```

All of it comes from what ``spead-tutorial check`` has, so that the page cannot ask for anything
else.
"""

from docutils import nodes
from listings import changes, chapter_page
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from spead_tutorial.chapters.exercises import ReceiverExercise, find_exercise


class Exercise(SphinxDirective):
    """What is to be written, and what it may look like."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        try:
            exercise = find_exercise(int(self.arguments[0]))
        except ValueError as error:
            raise self.error(str(error)) from None
        files = exercise.skeleton, exercise.solution
        self.env.note_dependency(str(exercise.solution))
        number = exercise.chapter.number
        task = f"{exercise.task} [Chapter {number}]({chapter_page(number)}) explains it."
        command = f"spead-tutorial check {number}"
        mine = f"my_{'receiver' if isinstance(exercise, ReceiverExercise) else 'sender'}.py"
        begin = [f"{command} --skeleton > {mine}", f"{command} {mine}"]
        hint = [":::{dropdown} Hint", exercise.hint, ":::"]
        solution = [":::{dropdown} Solution", "```diff", *changes(*files), "```", ":::"]
        lines = [task, "", "```sh", *begin, "```", "", *hint, "", *solution]
        return self.parse_text_to_nodes("\n".join(lines))


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("exercise", Exercise)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
