# SPDX-License-Identifier: BSD-3-Clause
"""Run a command in a network of nothing but loopback: ``sealed.py COMMAND [ARG ...]``.

What would leave the machine has no way to go, and fails. This becomes the command.
"""

import fcntl
import importlib
import os
import socket
import struct
import sys
import types
from pathlib import Path

# By its folder: the package would bring threads along, and then there is no new user namespace.
lab = sys.modules["lab"] = types.ModuleType("lab")
lab.__path__ = [str(Path(__file__).parent.parent / "spead_tutorial/lab")]
namespaces = importlib.import_module("lab.namespaces")

SIOCSIFFLAGS, IFF_UP = 0x8914, 0x1


def main() -> None:
    command = sys.argv[1:]
    if not command:
        say("say what to run: sealed.py COMMAND [ARG ...]")
        sys.exit(2)
    if refused():
        say("not sealed, for this machine refuses a network of its own")
    else:
        seal()
    try:
        os.execvp(command[0], command)
    except OSError as error:
        say(f"{command[0]}: {error.strerror}")
        sys.exit(127)


def say(what: str) -> None:
    print(f"sealed: {what}", file=sys.stderr, flush=True)


def seal() -> None:
    """Move into a new network, and bring its loopback up."""
    namespaces.make_namespaces()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sH14x", b"lo", IFF_UP))


def refused() -> bool:
    """Seal a process that ends at once, as there is no way back; return whether it failed."""
    if (child := os.fork()) == 0:
        try:
            seal()
        except Exception:
            os._exit(1)
        os._exit(0)
    return os.waitpid(child, 0)[1] != 0


if __name__ == "__main__":
    main()
