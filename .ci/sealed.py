# SPDX-License-Identifier: BSD-3-Clause
"""Run a command where nothing that it sends leaves the machine: ``sealed.py COMMAND [ARG ...]``.

The command gets a network of its own, in which all routes but loopback's lead to a device that
swallows and counts what comes; name servers are there, too. The exit status is the command's, or
1 where it sent something.
"""

import contextlib
import importlib
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import types
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
# By their folder: the package would bring threads along, and then there is no new user namespace.
lab = sys.modules["lab"] = types.ModuleType("lab")
lab.__path__ = [str(ROOT / "spead_tutorial/lab")]
namespaces, network, device = (
    importlib.import_module(f"lab.{name}") for name in ("namespaces", "network", "device")
)

DEVICE = "outside"
# A veth first: the package takes the others for harmless, and tests want to see it refuse.
KINDS = ("veth", "dummy", "ifb")
ADDRESSES = (("192.0.2.1", 24), ("2001:db8::1", 64))
NAME_SERVER = "203.0.113.1"
CLONE_NEWNS, MS_BIND, MS_PRIVATE_ALL = 0x20000, 0x1000, 0x44000
WHO = "sealed.py strace -f -e trace=network COMMAND tells who sends them, and where to"


def main() -> None:
    command = sys.argv[1:]
    if not command:
        say("say what to run: sealed.py COMMAND [ARG ...]")
        sys.exit(2)
    with tempfile.TemporaryDirectory() as folder:
        sys.exit(run_sealed(command, Path(folder)))


def run_sealed(command: list[str], folder: Path) -> int:
    refused = attempt(folder)
    if refused:
        say(f"not sealed, for this machine refuses it ({refused})")
        return run(command)
    seal(folder)
    before = counted()
    status = run(command)
    caught = counted() - before
    if caught:
        packets = "1 packet" if caught == 1 else f"{caught} packets"
        say(f"{packets} would have left the machine: {WHO}")
    else:
        say("no packet would have left the machine")
    return status or (1 if caught else 0)


def say(what: str) -> None:
    print(f"sealed: {what}", file=sys.stderr, flush=True)


# ---- The network ----


def attempt(folder: Path) -> str:
    """Seal a process that ends at once, as there is no way back; return what was refused."""
    read, write = os.pipe()
    if os.fork() == 0:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # what it has to say will be said later
        try:
            seal(folder)
        except device.RefusedError as error:
            os.write(write, f"{error.what}: {os.strerror(error.number)}".encode())
        except Exception as error:
            os.write(write, f"{type(error).__name__}: {error}".encode())
        os._exit(0)
    os.close(write)
    os.wait()
    with open(read) as file:
        return file.read()


def seal(folder: Path) -> None:
    """Move into a network that leads nowhere."""
    from pyroute2 import IPRoute

    namespaces.make_namespaces()
    cover_name_servers(folder)
    with IPRoute() as routes:
        routes.link("set", index=1, state="up")  # lo is always the first
        network.make_link(routes, DEVICE, KINDS, 1500)
        lead_everywhere(routes, routes.link_lookup(ifname=DEVICE)[0])


def lead_everywhere(routes: Any, index: int) -> None:
    """Give the device addresses, and the routes to all others."""
    from pyroute2.netlink.exceptions import NetlinkError

    for address, prefix in ADDRESSES:
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        flags = {"IFA_FLAGS": network.IFA_F_NODAD} if family == socket.AF_INET6 else {}
        try:
            routes.addr("add", index=index, address=address, prefixlen=prefix, **flags)
            routes.route("add", family=family, dst="default", oif=index)
        except NetlinkError:
            if family == socket.AF_INET:
                raise  # a kernel without IPv6 sends none


def cover_name_servers(folder: Path) -> None:
    """Let the C library ask a name server on the device, and no program of this machine."""
    libc = namespaces.libc
    if libc.unshare(CLONE_NEWNS) or libc.mount(None, b"/", None, MS_PRIVATE_ALL, None):
        say("questions to name servers are not counted: there is no mount namespace")
        return
    covers = {"resolv.conf": f"nameserver {NAME_SERVER}\nsearch .\noptions timeout:1 attempts:1\n"}
    with contextlib.suppress(OSError):
        order = Path("/etc/nsswitch.conf").read_text()
        covers["nsswitch.conf"] = re.sub("(?m)^hosts:.*$", "hosts: files dns", order)
    for name, text in covers.items():
        (folder / name).write_text(text)
        (folder / name).chmod(0o644)
        path = f"/etc/{name}"
        if libc.mount(bytes(folder / name), path.encode(), None, MS_BIND, None):
            say(f"questions to name servers may not be counted: there is no {path} to cover")


# ---- The command, and what it sent ----


def run(command: list[str]) -> int:
    """Run it to its end; an interrupt is its own to answer."""
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, lambda *_: None)
    try:
        process = subprocess.Popen(command)
    except OSError as error:
        say(f"{command[0]}: {error.strerror}")
        return 127
    signal.signal(signal.SIGTERM, lambda number, _: process.send_signal(number))
    status = process.wait()
    if status < 0:
        say(f"{command[0]} was ended by signal {-status}")
    return status if status >= 0 else 128 - status


def counted() -> int:
    """Return how many packets went into the device, which an ifb calls received."""
    for line in Path("/proc/self/net/dev").read_text().splitlines()[2:]:
        name, _, numbers = line.partition(":")
        if name.strip() == DEVICE:
            received, sent = (int(numbers.split()[column]) for column in (1, 9))
            return received + sent
    raise SystemExit(f"sealed: the command has removed the device {DEVICE!r}: nothing is known")


if __name__ == "__main__":
    main()
