# SPDX-License-Identifier: BSD-3-Clause
"""The file that says which hosts there are: ``hosts.toml``."""

import dataclasses
import re
import sys
import tomllib
from pathlib import Path
from typing import Any

from spead_tutorial.records import RecordError

__all__ = ["Host", "Hosts", "read_hosts"]

_PYTHON = ".venv/bin/python"


@dataclasses.dataclass(frozen=True, slots=True)
class Host:
    """A machine that measures."""

    name: str  # what it is called in lines and in names of files
    folder: str  # of the repository, there
    python: str = _PYTHON  # its Python; from the folder, if it is no whole path
    address: str | None = None  # what ssh is told; None for this machine
    # what goes before the command that measures, such as `("ip", "netns", "exec", "a")`
    prefix: tuple[str, ...] = ()
    # the address to which packets for it are sent; None for that of `address`
    receives_at: str | None = None

    @property
    def destination(self) -> str | None:
        """Where packets for it are sent to; None where the file does not say."""
        if self.receives_at or self.address is None:
            return self.receives_at
        return self.address.rpartition("@")[2]

    @property
    def python_path(self) -> str:
        """The whole path of its Python."""
        return str(Path(self.folder, self.python))


@dataclasses.dataclass(frozen=True, slots=True)
class Hosts:
    """All that the file says."""

    all: tuple[Host, ...]  # in their order
    here: str | None = None  # by which address they reach this machine; None where it is found out


def read_hosts(path: Path) -> Hosts:
    """Read the file."""
    try:
        said = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise RecordError(f"{path} is no TOML: {error}") from None
    tables = said.pop("host", [])
    here = said.pop("here", None)
    if said or not isinstance(here, str | None):
        raise RecordError(f"{path} has {', '.join(said) or 'here'}: it takes here, a string, and"
                          " [[host]] tables")  # fmt: skip
    if not isinstance(tables, list) or not tables:
        raise RecordError(f"{path} has no [[host]] table: each host needs one")
    hosts = tuple(_host(path, table) for table in tables)
    names = [host.name for host in hosts]
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise RecordError(f"{path} has two hosts of the name {min(twice)}")
    return Hosts(hosts, here)


def _host(path: Path, table: dict[str, Any]) -> Host:
    known = {field.name for field in dataclasses.fields(Host)}
    name = table.get("name")
    if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z0-9][\w.-]*", name):
        raise RecordError(f"{path} has a host whose name is {name!r}: letters, digits, -, _ and .")
    strange = set(table) - known
    if strange:
        raise RecordError(
            f"{path}: {name} has {min(strange)}, but a host has {', '.join(sorted(known))}"
        )
    for key, value in table.items():
        words = value if key == "prefix" and isinstance(value, list) else [value]
        if not all(isinstance(word, str) and word for word in words):
            raise RecordError(f"{path}: {name} has {key} = {value!r}: it takes text")
    address, folder = table.get("address"), table.get("folder")
    python = table.get("python", _PYTHON)
    if address is None:  # this machine
        folder = folder or str(Path.cwd())
        python = table.get("python", sys.executable)
    if folder is None or not Path(folder).is_absolute():
        raise RecordError(
            f"{path}: {name} needs folder, the whole path of the repository there,"
            " or of any folder where the package is installed"
        )
    prefix = table.get("prefix", [])
    prefix = tuple(prefix) if isinstance(prefix, list) else (prefix,)
    return Host(name, folder, python, address, prefix, table.get("receives_at"))
