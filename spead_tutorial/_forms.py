# SPDX-License-Identifier: BSD-3-Clause
"""Calls that have several forms, which the overloads of a function say."""

import contextlib
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, get_overloads


class Forms:
    """The forms of a function: looked up once, for what is typed may be forgotten later."""

    def __init__(self, name: str, function: Callable[..., object]) -> None:
        self._signatures = [inspect.signature(form) for form in get_overloads(function)]
        forms: list[str] = []
        options: dict[str, None] = {}
        for _, *parameters in (one.parameters.values() for one in self._signatures):
            by_name = [one for one in parameters if one.kind is one.KEYWORD_ONLY]
            needed = [f"{one.name}=..." for one in by_name if one.default is one.empty]
            options |= {one.name: None for one in by_name if one.default is not one.empty}
            forms.append(", ".join([one.name for one in parameters if one not in by_name] + needed))
        self._text = f"{name} takes {' or '.join(f'({form})' for form in forms)}"
        self._text += f", and by name {', '.join(options)}" if options else ""

    def bind(self, form: int, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """Return by their names what a form is given, and what it is not."""
        bound = self._signatures[form].bind(None, *args, **kwargs)
        bound.apply_defaults()
        return {name: value for name, value in bound.arguments.items() if name != "self"}

    @contextlib.contextmanager
    def told(self) -> Iterator[None]:
        """Have a TypeError say which forms there are."""
        try:
            yield
        except TypeError as error:
            error.args = (f"{error}; {self._text}",)
            raise
