# SPDX-License-Identifier: BSD-3-Clause
"""Runs the repository's notebooks from their sources: to store what they give, and as pages.

A notebook's source is ``NAME.md``, and what it gave on a real machine is in ``NAME.ipynb`` next
to it. What runs them comes with the extra ``[notebook]``.
"""

import base64
import contextlib
import copy
import hashlib
import html
import importlib.util
import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click

#: Where the notebooks are in the repository.
FOLDER = "notebooks"
#: Where a reader's own copies of them are, next to that folder.
OWN = "my-notebooks"
#: The one to begin with.
START = "00_start_here"
#: What a notebook's metadata has of its own run is below this: ``seconds``, how long it took.
METADATA = "spead_tutorial"

_CELL_S = 600
_KERNEL = "python3"
_SVG = "image/svg+xml"
_SETTINGS = Path(__file__).with_name("jupyterlab")  # what it does unless its user wants otherwise
_HIDDEN = "hide-input"
#: The tag of cells that test a notebook as it is stored, and are none of its lesson.
_TEST = "remove-cell"


class MissingError(RuntimeError):
    """Something is not here that notebooks need; the text says what, and what to do about it."""


class FailedError(RuntimeError):
    """A notebook could not be run to its end; the text says why, in one line."""


def sources(folder: Path) -> list[Path]:
    """Return the notebooks' sources in a folder, in the order in which they are read."""
    paths = sorted(folder.glob("[0-9][0-9]_*.md"))
    if not paths:
        raise MissingError(f"there is no folder {folder} with them here: they are the repository's")
    return paths


def names(folder: Path) -> tuple[str, ...]:
    return tuple(path.stem for path in sources(folder))


def read(source: Path) -> Any:
    """Make a notebook of its source; its cells have no outputs, and the same ids each time."""
    import jupytext

    notebook = jupytext.read(source)
    seen: dict[str, int] = {}
    for cell in notebook.cells:
        digest = hashlib.sha256(cell.source.encode()).hexdigest()[:8]
        seen[digest] = seen.get(digest, 0) + 1
        cell["id"] = f"{digest}-{seen[digest]}"
    return notebook


def lesson(notebook: Any) -> Any:
    """Return a notebook without the cells that only test it, which numbers may break."""
    shown = copy.deepcopy(notebook)
    shown.cells = [cell for cell in shown.cells if _TEST not in cell.metadata.get("tags", ())]
    return shown


def title(notebook: Any) -> str:
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            heading = re.search(r"(?m)^# +(.+)$", cell.source)
            if heading:
                return heading[1].strip()
    return "A notebook"


@contextlib.contextmanager
def environment(*, quick: bool) -> Iterator[dict[str, str]]:
    """Yield the environment of a kernel that does not depend on what its user has set up."""
    with tempfile.TemporaryDirectory() as folder:
        yield os.environ | {
            "IPYTHONDIR": folder,  # neither the history nor the start-up files of the user
            "PYDEVD_DISABLE_FILE_VALIDATION": "1",  # of no debugger: it would warn in the terminal
            "SPEAD_TUTORIAL_QUICK": str(int(quick)),
            "SPEAD_TUTORIAL_LOOPBACK": "0",
        }


def execute(notebook: Any, folder: Path, *, quick: bool) -> None:
    """Run all cells of a notebook in a kernel of its own, which is ended; the outputs are kept."""
    import nbclient
    from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError
    from traitlets.config import Config

    client = nbclient.NotebookClient(
        notebook,
        timeout=_CELL_S,
        kernel_name=_KERNEL,
        record_timing=False,
        resources={"metadata": {"path": str(folder)}},
    )
    try:
        with environment(quick=quick) as env:
            # A port that is chosen before the kernel takes it can be lost to another program: the
            # kernel then lives on and never answers. Sockets in a folder are nobody else's.
            place = {"transport": "ipc", "ip": f"{env['IPYTHONDIR']}/kernel"}
            client.config = Config(KernelManager=place)
            client.execute(env=env)
    except CellExecutionError as error:
        raise FailedError(f"{error.ename}: {' '.join(error.evalue.split())}") from None
    except CellTimeoutError:
        raise FailedError(f"a cell did not end within {_CELL_S} s") from None
    except DeadKernelError:
        # It takes Ctrl-C for itself, and ends the kernel.
        if getattr(client, "_async_cleanup_kernel_future", None) is not None:
            raise KeyboardInterrupt from None
        raise FailedError("its kernel has died") from None


# ---- As pages ----


def page(notebook: Any, name: str, root: str) -> str:
    """Return a notebook as one HTML page, which takes nothing from elsewhere."""
    import nbconvert
    from nbconvert.preprocessors import TagRemovePreprocessor

    shown = copy.deepcopy(notebook)
    shown.metadata["title"] = title(notebook)
    for cell in shown.cells:
        for output in cell.get("outputs", ()):
            if _SVG in output.get("data", {}):
                output["data"] = {"text/html": _image(output)}
    exporter = nbconvert.HTMLExporter()
    hide = TagRemovePreprocessor(remove_input_tags={_HIDDEN}, enabled=True)  # answers, drawing
    exporter.register_preprocessor(hide, enabled=True)
    text, _ = exporter.from_notebook_node(shown, {"metadata": {"name": name}})
    # What they load is for mathematics and widgets, which the notebooks do without.
    text = re.sub(r"(?s)<script\b.*?</script>", "", text)
    text = text.replace('href="../', f'href="{root}/')
    return re.sub(r'href="(\d\d_\w+)\.(?:ipynb|md)(?=["#])', r'href="\1.html', text)


def _image(output: Any) -> str:
    """Write a picture with the words that it has for those who do not see it."""
    svg = output["data"][_SVG]
    alt = output.get("metadata", {}).get(_SVG, {}).get("alt", "")
    data = base64.b64encode(svg.encode()).decode()
    return f'<img alt="{html.escape(alt)}" src="data:{_SVG};base64,{data}">'


def write_pages(
    folder: Path, output: Path, say: Callable[[str], None], *, quick: bool
) -> list[str]:
    """Run all notebooks, write each as a page, and return what failed; the first leads to all."""
    notebooks = sources(folder)
    output.mkdir(parents=True, exist_ok=True)
    failures = []
    for number, source in enumerate(notebooks, 1):
        say(f"notebook {number} of {len(notebooks)}: {source.stem}")
        notebook = lesson(read(source))
        try:
            execute(notebook, folder, quick=quick)
        except FailedError as error:
            failures.append(f"notebook {source.stem}: {error}")
        root = Path(os.path.relpath(folder.parent, output)).as_posix()
        text = page(notebook, source.stem, root)
        (output / f"{source.stem}.html").write_text(text, encoding="utf-8")
    return failures


# ---- A reader's own ----


def copies(folder: Path, target: Path) -> None:
    """Give a reader notebooks of their own to run and to change, where they have none."""
    import nbformat

    target.mkdir(exist_ok=True)
    for path in sorted(folder.glob("[0-9][0-9]_*.ipynb")):
        if not (own := target / path.name).exists():
            nbformat.write(own_copy(nbformat.read(path, 4), target.name), own)


def own_copy(stored: Any, name: str) -> Any:
    """Return a stored notebook as a reader has it, whose outputs look like what they are."""
    import nbformat

    notebook = lesson(stored)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.execution_count = None
            for output in cell.outputs:
                output.pop("execution_count", None)
                if output.output_type == "execute_result":
                    output["execution_count"] = None
    notebook.metadata = {"kernelspec": stored.metadata.get("kernelspec", {})}
    if "card" in stored.metadata:
        notebook.metadata["card"] = stored.metadata["card"]
    note = (
        "*The outputs are stored ones, of another machine, until you run their cells. This is your"
        f" copy, in `{name}`: change it as you like.*"
    )
    notebook.cells.insert(1, nbformat.v4.new_markdown_cell(note, id="your-copy"))
    return notebook


# ---- The command ----


@click.command()
@click.option("--folder", type=click.Path(file_okay=False, path_type=Path),
              default=Path(FOLDER), show_default=True,
              help="Where the notebooks are.")  # fmt: skip
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def notebook(folder: Path, arguments: tuple[str, ...]) -> int:
    """Open your copies of the notebooks in JupyterLab, at the one to start with.

    They are in my-notebooks, next to the folder, and made where they are missing: what you change
    or run is kept, and git does not see it. To have a new one, remove or rename yours.

    ARGUMENTS, after --, are JupyterLab's.

    Example: spead-tutorial notebook -- --no-browser
    """
    start = folder / f"{START}.ipynb"
    if not start.is_file():
        where = "say it in the repository's folder, or where they are: --folder"
        raise click.ClickException(f"there are no notebooks in {folder}: {where}")
    if importlib.util.find_spec("jupyterlab") is None:
        raise click.ClickException(
            "JupyterLab is not installed: pip install 'spead-tutorial[notebook]'"
        )
    own = folder.resolve().parent / OWN
    try:
        copies(folder, own)
    except FileExistsError:
        raise click.ClickException(f"{own} is no folder for your copies: rename it") from None
    except (OSError, ValueError) as error:
        raise click.ClickException(f"{own} cannot have your copies: {error}") from None
    # What JupyterLab shows is the folder's parent, so that links to the programs lead to them.
    opened = [f"--ServerApp.root_dir={own.parent}"]
    opened += [f"--LabApp.default_url=/lab/tree/{OWN}/{START}.ipynb"]
    opened += [f"--LabApp.app_settings_dir={_SETTINGS}"]
    sys.stdout.flush()
    # In this process's place: Ctrl-C is then JupyterLab's alone, which asks what is meant.
    os.execv(sys.executable, [sys.executable, "-m", "jupyterlab", *opened, *arguments])
