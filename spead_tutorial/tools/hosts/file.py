# SPDX-License-Identifier: BSD-3-Clause
"""The file that says which hosts there are: ``hosts.toml``."""

import sys
from pathlib import Path
from typing import Annotated, TypeAlias

import msgspec

from spead_tutorial.measure.records import RecordError

__all__ = ["Host", "read_hosts"]

_Text: TypeAlias = Annotated[str, msgspec.Meta(pattern=r"^[^\0]+\Z")]


class Host(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A machine on which something is run."""

    # what it is called in lines and in names of files
    name: Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*\Z")]
    # of the repository, there; None where we are
    folder: Annotated[str, msgspec.Meta(pattern=r"^/[^\0]*\Z")] | None = None
    python: _Text | None = None  # its Python; from the folder, if it is no whole path
    address: _Text | None = None  # what ssh is told; None for this machine
    # what goes before the command, such as `("ip", "netns", "exec", "a")`
    prefix: tuple[_Text, ...] = ()
    # the address to which packets for it are sent; None for that of `address`
    receives_at: _Text | None = None

    def __post_init__(self) -> None:
        if self.address and not self.folder:
            raise ValueError(f"{self.name} needs folder, the whole path of the repository there, or"
                             " of any folder where the package is installed")  # fmt: skip

    @property
    def destination(self) -> str | None:
        """Where packets for it are sent to; None where the file does not say."""
        if self.receives_at or self.address is None:
            return self.receives_at
        return self.address.rpartition("@")[2]

    @property
    def python_path(self) -> str:
        """The whole path of its Python."""
        python = self.python or (".venv/bin/python" if self.address else sys.executable)
        return str(Path(self.folder or "", python))


class _File(msgspec.Struct, forbid_unknown_fields=True):
    host: Annotated[list[Host], msgspec.Meta(min_length=1)]


def read_hosts(path: Path) -> list[Host]:
    """Read the file."""
    try:
        hosts = msgspec.toml.decode(path.read_bytes(), type=_File).host
    except (ValueError, RecursionError) as error:
        raise RecordError(f"{path} names no hosts as it should: {error}") from None
    names = [host.name for host in hosts]
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise RecordError(f"{path} has two hosts of the name {min(twice)}")
    return hosts
