# SPDX-License-Identifier: BSD-3-Clause
"""Python objects under the names that users import them by, and checked links between them.

Where an object is defined is nobody's business: ``spead_tutorial.send.Heap`` is in the compiled
core. A name in single backticks in a docstring becomes a link to what it names, seen from the
object that has the docstring; or it names a parameter. One that names neither is a warning.
"""

import enum
import functools
import importlib
import inspect
import re
import sys
from collections.abc import Iterator
from typing import Any

from docutils import nodes
from listings import ROOT
from numpydoc.docscrape import NumpyDocString
from numpydoc.xref import DEFAULT_LINKS
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.environment import BuildEnvironment
from sphinx.errors import PycodeError
from sphinx.pycode import ModuleAnalyzer
from sphinx.util import logging
from sphinx.util.inspect import stringify_signature

#: Modules that the reference describes; what is in several is known by the last one.
MODULES = sorted(
    found
    for page in (ROOT / "docs" / "reference" / "python").glob("*.rst")
    for found in re.findall(r"^\.\. automodule:: (\S+)", page.read_text(), re.M)
)
#: Classes that others make for their users.
_NOT_MADE = ("spead_tutorial.lab.LabProcess", "spead_tutorial.measure.place.Watched")
_QUOTED = re.compile(r"(?<![`:\w\\])`([A-Za-z_][\w.]*)(?:\(\))?`(?![`_\w])")
_log = logging.getLogger(__name__)


# ---- Names ----


@functools.cache
def public() -> dict[str, Any]:
    """Return everything public by its full name, modules too."""
    objects: dict[str, Any] = {}
    for module in map(importlib.import_module, MODULES):
        objects[module.__name__] = module
        names = getattr(module, "__all__", ())
        objects |= {f"{module.__name__}.{name}": getattr(module, name) for name in names}
    return objects


@functools.cache
def _by_short_name() -> dict[str, str]:
    """Return full names by their last part: of several the shortest, and rather a sender's."""
    names: dict[str, str] = {}
    for full in sorted(sorted(public(), reverse=True), key=len):
        if callable(public()[full]):
            names.setdefault(full.rpartition(".")[2], full)
    return names


@functools.cache
def _class_names() -> dict[type, str]:
    return {thing: full for full, thing in public().items() if isinstance(thing, type)}


def _member(owner: type, name: str) -> tuple[str, str] | None:
    """Return how to write a member of a class: as a link to where it is documented, or not."""
    for cls in owner.__mro__:
        if name in vars(cls):
            documented = inspect.getdoc(vars(cls)[name]) or comment_on(cls.__module__, cls, name)
            plain = inspect.ismemberdescriptor(vars(cls)[name])
            if cls in _class_names() and documented and not plain:
                return "link", f"{_class_names()[cls]}.{name}"
            return "name", name
    return None


def comment_on(module: str, owner: type | None, name: str) -> list[str]:
    """Return what a comment that begins with ``#:`` says of a name."""
    try:
        comments = ModuleAnalyzer.for_module(module).find_attr_docs()
    except PycodeError:
        return []
    return comments.get((owner.__qualname__ if owner else "", name), [])


def _resolve(word: str, name: str) -> tuple[str, str] | None:
    """Return what a word is, as it stands in the docstring of the object with that full name."""
    scope = name.split(".")
    head, dot, rest = word.partition(".")
    fulls = [word, *(".".join([*scope[:n], word]) for n in range(len(scope), 0, -1))]
    fulls.append(f"{_by_short_name().get(head, '')}{dot}{rest}")
    for full in fulls:
        if full in public():
            return "link", full
        owner, _, last = full.rpartition(".")
        cls = public().get(owner)
        if isinstance(cls, type) and (member := _member(cls, last)):
            return member
    return None


# ---- Signatures ----


def _signature(thing: Any) -> inspect.Signature | None:
    try:
        return inspect.signature(thing)
    except (ValueError, TypeError):
        return None


def sign(
    app: Sphinx, what: str, name: str, thing: Any, options: Any, arguments: str, returned: str
) -> tuple[str | None, str | None] | None:
    """Give names and defaults of parameters; what they are is said below them."""
    if what == "data":
        return None, None  # nor has it one for anybody who is asked later
    if what not in ("class", "exception", "function", "method") or not arguments:
        return None
    if name in _NOT_MADE or (isinstance(thing, type) and issubclass(thing, enum.Enum)):
        return "", ""
    docstring = inspect.getdoc(thing) or ""
    if docstring.startswith(f"{name.rpartition('.')[2]}("):
        return arguments, ""
    signature = _signature(thing)
    if signature is None:
        return arguments, ""
    parameters = list(signature.parameters.values())
    if what == "method" and parameters and parameters[0].name in ("self", "cls"):
        signature = signature.replace(parameters=parameters[1:])
    text = stringify_signature(signature, show_annotation=False, show_return_annotation=False)
    # What a frozen dataclass is by default says nothing but its name.
    text = re.sub(r"\b(Flavour|Options)\([^()]*\)", r"\1()", text)
    text = text.replace("=Ellipsis", "=Flavour()").replace("=<factory>", "={}")
    if what not in ("function", "method"):
        return text, ""
    described = NumpyDocString(docstring)
    said = described["Returns"] or described["Yields"]
    return text, "" if said or returned in ("None", "Self") else returned


def bases(app: Sphinx, name: str, thing: type, options: Any, found: list[Any]) -> None:
    """Name those that are public."""
    names = [f":py:class:`~{_class_names()[base]}`" for base in found if base in _class_names()]
    private = [base for base in found if base.__module__.startswith("spead_tutorial")]
    builtin = [base for base in found if base not in private and base is not object]
    found[:] = names + builtin or [object]


# ---- Docstrings ----


def complete(app: Sphinx, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """Find what is said of a constant where it is defined, and turn names into links."""
    last = name.rpartition(".")[2]
    if what == "data":
        said = [
            comment
            for module in list(sys.modules.values())
            if getattr(module, "__name__", "").startswith("spead_tutorial")
            and vars(module).get(last) is thing
            and (comment := comment_on(module.__name__, None, last))
        ]
        lines[:] = said[0] if said else []
        if not said:
            _log.warning("%s has no comment that begins with #:", name)
    if not any(line.strip() for line in lines) and what != "module":
        _log.warning("%s has no docstring", name)
    signature = _signature(thing)
    lines[:] = list(linked(lines, name, set(signature.parameters if signature else ())))
    if what == "class":
        lines += _inherited(thing)


def linked(lines: list[str], name: str, parameters: set[str]) -> Iterator[str]:
    """Yield the lines of a docstring, names in it turned into links or set like parameters."""
    text = "\n".join(lines)
    # numpydoc has made the names of parameters, attributes and exceptions bold.
    bold = re.findall(r"\*\*([^*]+)\*\*", text)
    named = parameters | {term.strip(" \\*") for group in bold for term in group.split(",")}

    def write(match: re.Match[str]) -> str:
        word = match[1]
        if word in named:
            return f"*{word}*"
        meaning = _resolve(word, name)
        if meaning is None:
            _log.warning("docstring of %s: `%s` names nothing public, no parameter", name, word)
            return f"``{word}``"
        kind, target = meaning
        return f":py:obj:`{word} <{target}>`" if kind == "link" else f"``{word}``"

    for line in lines:
        yield line if line.lstrip().startswith((">>>", "...")) else _QUOTED.sub(write, line)


def _inherited(cls: type) -> Iterator[str]:
    """Name what a class has from public ones, which is documented there."""
    for base in cls.__mro__[1:]:
        if base not in _class_names():
            continue
        names = [n for n in vars(base) if not n.startswith("_") and n not in vars(cls)]
        links = [
            f":py:obj:`{name} <{target[1]}>`"
            for name in names
            if (target := _member(base, name)) is not None and target[0] == "link"
        ]
        if links:
            yield from ("", f"From :py:class:`~{_class_names()[base]}`: {', '.join(links)}.", "")


def inherit(
    app: Sphinx, env: BuildEnvironment, node: pending_xref, inner: nodes.TextElement
) -> nodes.Node | None:
    """Lead links to what a class has inherited, or describes itself, to where that is said."""
    owner, _, last = node.get("reftarget", "").rpartition(".")
    cls = public().get(owner)
    if node.get("refdomain") != "py" or not isinstance(cls, type):
        return None
    member = _member(cls, last)
    if member is None:
        return None
    target = member[1] if member[0] == "link" else owner
    domain = env.domains.python_domain
    return domain.resolve_xref(env, node["refdoc"], app.builder, "obj", target, node, inner)


def tell_numpydoc(app: Sphinx, config: Config) -> None:
    """Have the types of parameters linked that are our own classes, and no others."""
    own = {
        short: full for short, full in _by_short_name().items() if isinstance(public()[full], type)
    }
    config.numpydoc_xref_aliases = {word: word for word in DEFAULT_LINKS} | own


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("config-inited", tell_numpydoc, priority=400)
    app.connect("autodoc-process-signature", sign, priority=400)
    app.connect("autodoc-process-bases", bases)
    app.connect("autodoc-process-docstring", complete, priority=600)
    app.connect("missing-reference", inherit)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
