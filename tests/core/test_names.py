# SPDX-License-Identifier: BSD-3-Clause
"""Every public name of spead2's is here, and is called alike, but for what a page says."""

import ast
import importlib.util
import inspect
import itertools
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import spead_tutorial as st
from spead_tutorial import recv, send
from spead_tutorial.send import asyncio as send_asyncio
from support import ROOT

HAS_NUMBA = importlib.util.find_spec("numba") is not None
MODULES = ["", ".send", ".send.asyncio", ".recv", ".recv.asyncio", ".recv.stream_stat_indices"]
MODULES += [".numba", ".recv.numba"] if HAS_NUMBA else []
PAGE = ROOT / "docs" / "explanation" / "spead2.md"
#: Counts, which statistics have as attributes of theirs, not of their class.
COUNTS = {stat.name for stat in recv.StreamConfig().stats}


def theirs(module: str) -> ModuleType:
    return importlib.import_module(f"spead2{module}")


def ours(module: str) -> ModuleType:
    return importlib.import_module(f"spead_tutorial{module}")


def public(module: ModuleType) -> Iterator[tuple[str, Any]]:
    """Names of a module that are not other modules, nor imported from outside of the package."""
    for name, thing in vars(module).items():
        origin = getattr(thing, "__module__", None) or "spead2"
        if name[0] != "_" and not inspect.ismodule(thing) and origin.startswith("spead2"):
            yield name, thing


def members(cls: type) -> set[str]:
    return {name for name in dir(cls) if name[0] != "_"}


def missing() -> Iterator[str]:
    """Names that are not here: those of modules with theirs, those of classes by themselves."""
    for module in MODULES:
        here = ours(module)
        for name, thing in public(theirs(module)):
            if not hasattr(here, name):
                yield f"{module[1:]}.{name}".lstrip(".")
            elif inspect.isclass(thing):
                known = members(getattr(here, name)) | (COUNTS if name == "StreamStats" else set())
                yield from members(thing) - known


def of_the_page(kind: str) -> list[str]:
    """The names in the rows of the page's table that say this of them."""
    rows = re.findall(rf"^\| (`.*?) \| {kind} \|", PAGE.read_text(), re.M)
    return sorted(itertools.chain.from_iterable(re.findall(r"`(\w[\w.]*)`", row) for row in rows))


def test_every_name_is_here_but_for_those_that_a_page_lists():
    assert sorted(set(missing())) == of_the_page("missing")


def test_constants_have_the_values_that_they_have_there():
    compared = 0
    for module in MODULES:
        here, there = ours(module), theirs(module)
        pairs = [(here, there)]
        pairs += [(getattr(here, name, None), thing) for name, thing in public(there)]
        for mine, its in pairs:
            for name in filter(str.isupper, dir(its)):
                value = getattr(its, name)
                if mine is not None and isinstance(value, int | float | str):
                    assert getattr(mine, name, value) == value, name
                    compared += 1
    assert compared > 40


# ---- Signatures ----

#: What tells its forms apart by itself, or is called from compiled code alone.
NOT_COMPARED = ("MemoryPool.__init__", "numba.intp_to_voidptr")

Classes = dict[str, ast.ClassDef]  # of the stubs, by their names in full
STUBS = {
    module: ast.parse(Path(theirs(module).__file__ or "").with_suffix(".pyi").read_text())
    for module in MODULES
}
CLASSES = {
    f"spead2{module}.{cls.name}": cls
    for module, tree in STUBS.items()
    for cls in tree.body
    if isinstance(cls, ast.ClassDef)
}


def functions(module: str, cls: ast.ClassDef) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Functions of a class with all of their overloads, and those that it inherits."""
    own = [one for one in cls.body if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)]
    yield from own
    for base in map(ast.unparse, cls.bases):
        full = base if base.startswith("spead2.") else f"spead2{module}.{base}"
        if full in CLASSES:
            its_module = full.rpartition(".")[0].removeprefix("spead2")
            for one in functions(its_module, CLASSES[full]):
                if one.name not in [function.name for function in own]:
                    yield one


def calls() -> Iterator[tuple[str, Any, ast.arguments]]:
    """What is called in spead2, ours, and the arguments of one of the ways to call it."""
    for module, tree in STUBS.items():
        here = ours(module)
        for thing in tree.body:
            counterpart = getattr(here, getattr(thing, "name", ""), None)
            if counterpart is not None and isinstance(thing, ast.FunctionDef):
                yield f"{module[1:]}.{thing.name}".lstrip("."), counterpart, thing.args
            if counterpart is None or not isinstance(thing, ast.ClassDef):
                continue
            for one in functions(module, thing):
                called = (
                    counterpart if one.name == "__init__" else getattr(counterpart, one.name, None)
                )
                if callable(called) and (one.name[:2] != "__" or one.name == "__init__"):
                    yield f"{thing.name}.{one.name}", called, one.args


CALLS = [call for call in calls() if call[0] not in NOT_COMPARED]


def bind(called: Any, arguments: ast.arguments, *, needed_only: bool) -> None:
    """Bind each argument to its name: those before a star by place."""
    names, by_name = ([one.arg for one in some] for some in (arguments.args, arguments.kwonlyargs))
    if needed_only:
        names = names[: len(names) - len(arguments.defaults)]
        by_name = [
            n for n, default in zip(by_name, arguments.kw_defaults, strict=True) if not default
        ]
    is_bound = inspect.isclass(called) or inspect.ismethod(called)
    if names[:1] == ["cls"] or (names[:1] == ["self"] and is_bound):
        del names[0]
    bound = inspect.signature(called).bind(*names, **{name: name for name in by_name}).arguments
    taken = {name: value for name, value in bound.items() if str(value)[:1] != "_"}
    if not {"args", "kwargs"} & taken.keys():
        assert list(taken) == list(taken.values())


@pytest.mark.parametrize("call", CALLS, ids=[call[0] for call in CALLS])
def test_it_is_called_as_there(call):
    _, called, arguments = call
    bind(called, arguments, needed_only=False)
    bind(called, arguments, needed_only=True)


# ---- Names that are refused ----


@pytest.mark.parametrize("streams", [send, send_asyncio])
def test_who_uses_ibverbs_is_told_what_to_use(streams):
    with st.ThreadPool() as pool:
        config = send.UdpIbvConfig(endpoints=[("239.1.1.1", 8888)], interface_address="10.0.0.1")
        with pytest.raises(NotImplementedError, match="UdpStream"):
            streams.UdpIbvStream(pool, send.StreamConfig(), config)
        stream = recv.Stream(pool)
        with pytest.raises(NotImplementedError, match="add_udp_reader"):
            stream.add_udp_ibv_reader(recv.UdpIbvConfig(endpoints=[("239.1.1.1", 8888)]))
    refused = ["UdpIbvStream", "UdpIbvConfig", "add_udp_ibv_reader"]
    assert of_the_page("refused") == sorted(refused)


@pytest.mark.parametrize("module", [".send", ".recv"])
def test_configurations_of_ibverbs_are_those_of_spead2(module):
    there, here = (package(module).UdpIbvConfig for package in (theirs, ours))
    for name in members(there):
        values = [getattr(cls() if name[0].islower() else cls, name) for cls in (there, here)]
        assert values[0] == (list(values[1]) if isinstance(values[1], tuple) else values[1])
