# SPDX-License-Identifier: BSD-3-Clause
"""Dataclasses out of what a JSON object holds, where every field is what its annotation says."""

import dataclasses
import math
import types
import typing
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

__all__ = ["FieldError", "made", "misfit"]

#: What a table's column of integers holds at most.
_MOST = (1 << 63) - 1

_Made = TypeVar("_Made", bound="DataclassInstance")


class FieldError(ValueError):
    """A field is not what it has to be; the text says which, what it is, and what was expected."""


class _Kind(NamedTuple):
    """What a value has to be: in words, and what finds out whether it is."""

    words: str
    holds: Callable[[Any], bool]


_TEXT = _Kind("a text", lambda value: type(value) is str)
_PLAIN: Mapping[object, _Kind] = {
    Any: _Kind("anything", lambda value: True),
    str: _TEXT,
    bool: _Kind("true or false", lambda value: type(value) is bool),
    types.NoneType: _Kind("null", lambda value: value is None),
    float: _Kind(
        "a number of at least 0",
        lambda value: type(value) in (int, float) and 0 <= value < math.inf,
    ),
}


def _whole(least: int) -> _Kind:
    return _Kind(
        f"a whole number of at least {least}",
        lambda value: type(value) is int and least <= value <= _MOST,
    )


def _kind(hint: Any, least: int = 0) -> _Kind:
    """Return what an annotation asks for."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if hint is int:
        return _whole(least)
    if origin is types.UnionType:
        several = [_kind(argument, least) for argument in arguments]
        words = " or ".join(one.words for one in several)
        return _Kind(words, lambda value: any(one.holds(value) for one in several))
    if origin in (tuple, list):
        each = _kind(arguments[0])
        return _Kind(
            f"a list, each element {each.words}",
            lambda value: type(value) is origin and all(map(each.holds, value)),
        )
    if origin is dict:
        each = _kind(arguments[1])
        return _Kind(
            "an object" if each is _PLAIN[Any] else f"an object, each value {each.words}",
            lambda value: type(value) is dict and all(map(each.holds, value.values())),
        )
    return _PLAIN[hint]


def misfit(name: str, value: object, hint: Any, least: int = 0) -> str | None:
    """Say why a value is not what it has to be."""
    return _misfit(name, value, _kind(hint, least))


def _misfit(name: str, value: object, kind: _Kind) -> str | None:
    if kind.holds(value):
        return None
    shown = repr(value)
    shown = shown if len(shown) <= 60 else f"{shown[:57]}..."
    return f"{name} is {shown}, where it has to be {kind.words}"


class _Field(NamedTuple):
    kind: _Kind
    needed: bool
    is_tuple: bool


#: The fields of each dataclass that was made already: finding out takes longer than a line does.
_fields_of: dict[type, Mapping[str, _Field]] = {}


def _fields(cls: "type[DataclassInstance]") -> Mapping[str, _Field]:
    if cls not in _fields_of:
        hints = typing.get_type_hints(cls)
        _fields_of[cls] = {
            field.name: _Field(
                _kind(hints[field.name], field.metadata.get("least", 0)),
                field.default is field.default_factory is dataclasses.MISSING,
                typing.get_origin(hints[field.name]) is tuple,
            )
            for field in dataclasses.fields(cls)
        }
    return _fields_of[cls]


def made(cls: type[_Made], record: Mapping[str, Any]) -> _Made:
    """Make a dataclass out of a JSON object."""
    fields = _fields(cls)
    word = cls.__name__.lower()
    for name in record:
        if name not in fields:
            raise FieldError(f"{name!r} is nothing that a {word} has")
    values = {}
    for name, field in fields.items():
        if name not in record:
            if field.needed:
                raise FieldError(f"{name} is missing")
            continue
        value = record[name]
        if field.is_tuple and type(value) is list:
            value = tuple(value)
        problem = _misfit(name, value, field.kind)
        if problem is not None:
            raise FieldError(problem)
        values[name] = value
    return cls(**values)
