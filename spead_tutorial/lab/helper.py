# SPDX-License-Identifier: BSD-3-Clause
# mypy: disable-error-code="import-untyped"
"""The process that is inside a lab, so that its caller need not be.

`spead_tutorial.lab` starts this file as a script. It moves itself into a new network
namespace, makes the device there, and serves its caller over a Unix socket until that
socket closes or the caller dies. It imports nothing of the package, so that a lab works
without the compiled core, and it has a single thread, as unsharing a user namespace asks, and
entering one. Told to ``enter`` a lab that stays, it makes room there for a command.

A message is one JSON object, with file descriptors beside it where an operation needs them.
A reply repeats the ``id`` of its request and holds either ``ok`` or ``error``.
"""

import contextlib
import ctypes
import errno
import fcntl
import json
import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

CLONE_NEWUSER = 0x10000000
CLONE_NEWNET = 0x40000000
PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
NS_GET_USERNS = 0xB701
SO_NETNS_COOKIE = 71
IFF_UP, IFF_NOARP, IFF_MULTICAST = 0x1, 0x80, 0x1000
IFA_F_NODAD = 0x02
ADDR_GEN_MODE_NONE = 1
MESSAGE_BYTES = 1 << 20

KEEPER = "keeper.py"
DEVICE = "dummy1"
VETH_PEER = "far0"
#: The devices between which a relay of the receiver's is: it sends into one, and the other gets it.
RELAY, RELAYED = "relay0", "relay1"
LOOPBACK = "lo"
KINDS = ("dummy", "ifb", "veth")
ADDRESS, PREFIX = "192.168.31.1", 24
ADDRESS6, PREFIX6 = "fd00:31::1", 64
DESTINATION, DESTINATION6 = "192.168.31.2", "fd00:31::2"
MAC, DESTINATION_MAC = "02:00:00:00:1f:01", "02:00:00:00:1f:02"
NOBODYS_MAC = "02:00:00:00:1f:03"
#: Says of a veth that it leads to a lab's receiver, and nowhere else.
ALIAS = "to a receiver of spead_tutorial's"
#: Bytes that pass a limited link at once, after it had nothing to do: more than the largest message
#: of the kernel's with all its headers, which would be cut otherwise, and counted in pieces.
BURST = 1 << 17
#: Bytes that may wait before a limited link: far more than the send buffers of a few sockets, so
#: that it is the sender that waits, as behind a real card, and nothing is dropped.
BACKLOG = 1 << 26
#: What decides how far a GSO message gets in one piece, and who computes its checksums.
OFFLOADS = (
    "tx-udp-segmentation",
    "tx-checksumming",
    "scatter-gather",
    "generic-segmentation-offload",
)

libc = ctypes.CDLL(None, use_errno=True)


class RefusedError(Exception):
    """The kernel said no."""

    def __init__(self, what: str, number: int) -> None:
        super().__init__(what, number)
        self.what = what
        self.number = number


def enter_namespaces() -> bool:
    """Move into a new network namespace; return whether it needed a user namespace too."""
    user, group = os.geteuid(), os.getegid()
    if user == 0 and libc.unshare(CLONE_NEWNET) == 0:
        return False
    if libc.unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0:
        raise RefusedError("namespace", ctypes.get_errno())
    # The same ids inside as outside: programs in the lab see the user that started them.
    try:
        for name, text in (
            ("setgroups", "deny"),
            ("uid_map", f"{user} {user} 1"),
            ("gid_map", f"{group} {group} 1"),
        ):
            with open(f"/proc/self/{name}", "w") as file:
                file.write(text)
    except OSError as error:
        raise RefusedError("namespace", error.errno or 0) from error
    return True


def settle_beside(user: int | None) -> None:
    """Move into a new network namespace of the same user namespace as another lab's."""
    for done in (
        user is None or libc.setns(user, CLONE_NEWUSER) == 0,
        libc.unshare(CLONE_NEWNET) == 0,
    ):
        if not done:
            raise RefusedError("namespace", ctypes.get_errno())


def is_same(path: str, fd: int) -> bool:
    here, there = os.stat(path), os.fstat(fd)
    return (here.st_dev, here.st_ino) == (there.st_dev, there.st_ino)


def enter(connection: int, net: int, user: int | None = None) -> None:
    """Move into a lab that stays, with what its keeper gave; `connection` ends with that."""
    if is_same("/proc/self/ns/net", net):
        return
    move_into(net, user)
    # Whoever ends a lab ends its keeper first, and then looks who is inside.
    if select.select([connection], [], [], 0)[0]:
        raise OSError(errno.ENOENT, "the lab has been ended meanwhile")


def enter_left(net: int) -> None:
    """Move into the network of a lab whose keeper was killed, and which something else keeps."""
    if is_same("/proc/self/ns/net", net):
        return
    user = fcntl.ioctl(net, NS_GET_USERNS)
    try:
        move_into(net, None if is_same("/proc/self/ns/user", user) else user)
    finally:
        os.close(user)


def move_into(net: int, user: int | None) -> None:
    for fd, kind in ((user, CLONE_NEWUSER), (net, CLONE_NEWNET)):
        if fd is not None and libc.setns(fd, kind) != 0:
            number = ctypes.get_errno()
            raise OSError(
                number,
                f"the lab cannot be entered from here ({os.strerror(number)}): do it where it was"
                " made, in no other lab or container",
            )


def cookie() -> int | None:
    """Return what the kernel calls this network, and no other ever; None before Linux 5.14."""
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as sock:
        return int.from_bytes(sock.getsockopt(socket.SOL_SOCKET, SO_NETNS_COOKIE, 8), sys.byteorder)
    return None


def enter_and_execute(fds: Sequence[int], command: list[str]) -> None:
    """Become a command in a lab that stays; end the process with a line where that cannot be."""
    try:
        enter(*fds)
    except OSError as error:
        sys.exit(f"spead-tutorial: {error.strerror}")
    for fd in fds:
        os.close(fd)
    # What Python ignores or takes for itself is none of the command's business.
    for number in (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGINT):
        if number != signal.SIGINT or signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    try:
        os.execvp(command[0], command)
    except OSError as error:
        print(f"spead-tutorial: {command[0]}: {error.strerror}", file=sys.stderr)
        sys.exit(127 if isinstance(error, FileNotFoundError) else 126)


def add_link(routes: Any, name: str, kind: str, **peer: Any) -> bool:
    """Make a device; return False where the kernel does not know the kind."""
    from pyroute2.netlink.exceptions import NetlinkError

    more = {"peer": {"ifname": VETH_PEER, **peer}} if kind == "veth" else {}
    try:
        routes.link("add", ifname=name, kind=kind, **more)
    except NetlinkError as error:
        if error.code in (errno.EOPNOTSUPP, errno.ENODEV, errno.ENOENT):
            return False
        raise RefusedError("device", error.code) from error
    return True


def bring_up(routes: Any, name: str, mtu: int, **more: Any) -> int:
    """Bring a device up such that it never sends anything by itself; return its index."""
    from pyroute2.netlink.exceptions import NetlinkError

    index: int = routes.link_lookup(ifname=name)[0]
    # No link-local address, no neighbour discovery, no group membership: without these
    # the kernel has nothing to say on the device, and its counters hold only what was sent.
    quiet = {"attrs": [("IFLA_INET6_ADDR_GEN_MODE", ADDR_GEN_MODE_NONE)]}
    with contextlib.suppress(NetlinkError):  # A kernel without IPv6 is quiet anyway.
        routes.link("set", index=index, IFLA_AF_SPEC={"attrs": [("AF_INET6", quiet)]})
    routes.link("set", index=index, mtu=mtu, **more)
    routes.link(
        "set",
        index=index,
        flags=IFF_UP | IFF_NOARP,
        change=IFF_UP | IFF_NOARP | IFF_MULTICAST,
    )
    # An ifb gets a queue of 32 packets by default, and loses some there, uncounted, as soon
    # as two threads send. dummy and veth have no queue; so has this one now.
    with contextlib.suppress(NetlinkError):
        routes.tc("replace", "noqueue", index)
    return index


def limit_rate(routes: Any, index: int, bytes_per_s: int) -> None:
    """Let a device send that much and no more, by a token bucket; at 0 what it can, as before."""
    from pyroute2.netlink.exceptions import NetlinkError

    if not bytes_per_s:
        routes.tc("replace", "noqueue", index)
        return
    try:
        routes.tc("replace", "tbf", index, rate=bytes_per_s, burst=BURST, limit=BACKLOG)
    except NetlinkError as error:
        raise RefusedError("limit", error.code) from error


def make_link(routes: Any, name: str, kinds: Sequence[str], mtu: int) -> tuple[str, int]:
    """Make a device of the first kind that the kernel offers; return its kind and index."""
    for made in kinds:
        if add_link(routes, name, made):
            break
    else:
        raise RefusedError("kind", errno.EOPNOTSUPP)
    if made == "veth":
        # Only sending and dropping happen there: IPv6 would add a second route for multicast,
        # out of the wrong end.
        without_ipv6(VETH_PEER)
        bring_up(routes, VETH_PEER, mtu)
    return made, bring_up(routes, name, mtu)


def make_device(kind: str | None, mtu: int) -> dict[str, Any]:
    """Make the lab's device, of the first kind that the kernel offers or of a forced one."""
    from pyroute2 import IPRoute
    from pyroute2.netlink.exceptions import NetlinkError

    with IPRoute() as routes:
        routes.link("set", index=1, state="up")  # lo is always the first
        try:
            made, index = make_link(routes, DEVICE, KINDS if kind is None else (kind,), mtu)
            has_ipv6 = lead_to(routes, index)
        except NetlinkError as error:
            raise RefusedError("device", error.code) from error
    return {"kind": made, "device": DEVICE, "ipv6": has_ipv6}


def make_way(receiver: int) -> None:
    """Make the sender's device, the other end of which is in a receiver's namespace."""
    from pyroute2 import IPRoute

    with IPRoute() as routes:
        routes.link("set", index=1, state="up")
        if not add_link(routes, DEVICE, "veth", net_ns_fd=receiver):
            raise RefusedError("way", errno.EOPNOTSUPP)


def make_begin(mtu: int) -> dict[str, Any]:
    """Bring the sender's device up, after the receiver's: so it takes packets at once."""
    from pyroute2 import IPRoute
    from pyroute2.netlink.exceptions import NetlinkError

    with IPRoute() as routes:
        try:
            without_ipv6(DEVICE)
            index = bring_up(routes, DEVICE, mtu, address=MAC, ifalias=ALIAS)
            has_ipv6 = lead_to(routes, index)
        except NetlinkError as error:
            raise RefusedError("device", error.code) from error
    return {"kind": "veth", "device": DEVICE, "ipv6": has_ipv6}


def make_end(mtu: int) -> None:
    """Bring the receiver's device up, which was made with the sender's."""
    from pyroute2 import IPRoute
    from pyroute2.netlink.exceptions import NetlinkError

    with IPRoute() as routes:
        routes.link("set", index=1, state="up")
        try:
            without_ipv6(VETH_PEER)
            index = bring_up(routes, VETH_PEER, mtu, address=DESTINATION_MAC)
            routes.addr("replace", index=index, address=DESTINATION, prefixlen=PREFIX)
            routes.route("replace", dst="224.0.0.0/4", oif=index)
            add_neighbour(routes, index, ADDRESS, MAC)
        except NetlinkError as error:
            raise RefusedError("device", error.code) from error


def make_detour(mtu: int) -> None:
    """Make two devices: what is sent into the first arrives at the second, as at the receiver's."""
    from pyroute2 import IPRoute
    from pyroute2.netlink.exceptions import NetlinkError

    # What arrives at a device by which nobody would answer is dropped otherwise.
    for name in ("all", "default"):
        write_quietly(f"/proc/sys/net/ipv4/conf/{name}/rp_filter", "0")
    with IPRoute() as routes:
        try:
            add_link(routes, RELAY, "veth", ifname=RELAYED)
            for name, link in ((RELAYED, DESTINATION_MAC), (RELAY, NOBODYS_MAC)):
                without_ipv6(name)
                bring_up(routes, name, mtu, address=link)
        except NetlinkError as error:
            raise RefusedError("device", error.code) from error


def turn(link: str) -> None:
    """Give the receiver's device a link address; with another than its own it takes nothing."""
    from pyroute2 import IPRoute

    with IPRoute() as routes:
        routes.link("set", index=routes.link_lookup(ifname=VETH_PEER)[0], address=link)


def make_loopback(mtu: int) -> dict[str, Any]:
    """Let the address that programs send to lead back to this namespace."""
    from pyroute2 import IPRoute
    from pyroute2.netlink.exceptions import NetlinkError

    with IPRoute() as routes:
        try:
            routes.link("set", index=1, mtu=mtu, state="up")
            lead_back(routes, 1)
        except NetlinkError as error:
            raise RefusedError("device", error.code) from error
    return {"kind": "loopback", "device": LOOPBACK, "ipv6": False}


def lead_back(routes: Any, index: int) -> None:
    routes.addr("replace", index=index, address=DESTINATION, prefixlen=32)
    routes.route("replace", dst="224.0.0.0/4", oif=index)


def lead_to(routes: Any, index: int) -> bool:
    """Let addresses and routes lead to a device that is up; return whether those of IPv6 do.

    Taking a device down loses all of it but the address of IPv4; what is there already stays.
    """
    from pyroute2.netlink.exceptions import NetlinkError

    routes.addr("replace", index=index, address=ADDRESS, prefixlen=PREFIX)
    routes.route("replace", dst="224.0.0.0/4", oif=index)
    add_neighbour(routes, index, DESTINATION)
    try:
        routes.addr(
            "replace", index=index, address=ADDRESS6, prefixlen=PREFIX6, IFA_FLAGS=IFA_F_NODAD
        )
        add_neighbour(routes, index, DESTINATION6)
    except NetlinkError:
        return False
    return True


def device_facts(name: str) -> dict[str, Any]:
    """Read what the kernel will do with what is sent into a device; None is not known."""
    from pyroute2 import IPRoute

    with IPRoute() as routes:
        (link,) = routes.get_links(routes.link_lookup(ifname=name)[0])
    return {
        "mtu": link.get_attr("IFLA_MTU"),
        "qdisc": link.get_attr("IFLA_QDISC"),
        "tx_queue_length": link.get_attr("IFLA_TXQLEN"),
        "gso_max_size": link.get_attr("IFLA_GSO_MAX_SIZE"),
        "gso_max_segs": link.get_attr("IFLA_GSO_MAX_SEGS"),
        "offloads": offloads(name),
    }


def offloads(name: str) -> dict[str, bool | None]:
    """Read a device's features that matter to a sender, by the names of ``ethtool -k``."""
    from pyroute2.ethtool.ioctl import IoctlEthtool, NotSupportedError

    features: dict[str, bool | None] = dict.fromkeys(OFFLOADS)
    device = IoctlEthtool(name)
    try:
        for read in (device.get_features, device.get_offload_flags):
            with contextlib.suppress(OSError, NotSupportedError):
                known = read()
                features |= {one: bool(known[one]) for one in OFFLOADS if one in known}
    finally:
        device.close()
    return features


def add_neighbour(routes: Any, index: int, address: str, link: str = DESTINATION_MAC) -> None:
    """Say once for all where an address is, so that nobody asks for it on the device.

    Without a receiver nothing has that link address: a veth's far end drops what arrives, and
    answers nothing.
    """
    routes.neigh("replace", index=index, dst=address, lladdr=link, state="permanent")


def without_ipv6(name: str) -> None:
    write_quietly(f"/proc/sys/net/ipv6/conf/{name}/disable_ipv6", "1")


def write_quietly(path: str, text: str) -> None:
    """Write a sysctl where it exists and may be written."""
    with contextlib.suppress(OSError), open(path, "w") as file:
        file.write(text)


def offered_kinds() -> list[str]:
    """Find out which kinds of device this kernel makes, by making one of each."""
    from pyroute2 import IPRoute

    kinds = []
    with IPRoute() as routes:
        for number, kind in enumerate(KINDS):
            if add_link(routes, f"probe{number}", kind):
                kinds.append(kind)
                routes.link("del", index=routes.link_lookup(ifname=f"probe{number}")[0])
    return kinds


def children() -> list[int]:
    """List the processes whose parent is this one."""
    pids = []
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/stat", "rb") as file:
                fields = file.read().rpartition(b")")[2].split()
        except OSError:
            continue  # ended meanwhile
        if int(fields[1]) == os.getpid():
            pids.append(int(name))
    return pids


class Helper:
    """Serves one caller."""

    def __init__(self, channel: socket.socket, caller: int) -> None:
        self.channel = channel
        self.caller = caller
        # By the caller's own number for each: it can name a program before it knows its pid.
        self.programs: dict[int, tuple[subprocess.Popen[bytes], int]] = {}
        self.keeper: subprocess.Popen[bytes] | None = None
        self.receiver: int | None = None  # its namespace, for the keeper

    def serve(self) -> None:
        """Answer requests until the caller closes its end or dies."""
        woken, waker = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        # Ctrl-C in a terminal, and the terminal's end, reach the whole process group; so does what
        # ends a service, or timeout(1). They are meant for the programs in the lab and for the
        # caller, who ends this process. A handler, unlike SIG_IGN, is not inherited.
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, lambda *_: None)
        # Programs orphaned in the lab become ours, so that the end of the lab finds them.
        libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)

        poll = select.poll()
        poll.register(self.channel, select.POLLIN)
        poll.register(woken, select.POLLIN)
        # A caller that forked has copies of its end: the end of file alone is not enough.
        with contextlib.suppress(OSError):
            poll.register(os.pidfd_open(self.caller), select.POLLIN)
        try:
            while os.getppid() == self.caller:
                ready = {fd for fd, _ in poll.poll()}
                if woken in ready:
                    os.read(woken, 4096)
                    self.reap()
                if self.channel.fileno() in ready and not self.answer():
                    return
        finally:
            self.end_programs()

    def answer(self) -> bool:
        """Answer one request; return False at end of file."""
        try:
            data, fds, _, _ = socket.recv_fds(
                self.channel, MESSAGE_BYTES, 8, socket.MSG_CMSG_CLOEXEC
            )
        except ConnectionResetError:
            return False
        if not data:
            return False
        request = json.loads(data)
        reply: dict[str, Any] = {"id": request["id"]}
        given: list[int] = []
        try:
            reply["ok"], given = getattr(self, "op_" + request["op"])(request, fds)
        except RefusedError as error:
            reply["error"] = {"what": error.what, "errno": error.number}
        except OSError as error:
            reply["error"] = {
                "what": "os",
                "errno": error.errno or 0,
                "text": error.strerror or str(error),
                "filename": error.filename if isinstance(error.filename, str) else None,
            }
        except Exception as error:
            reply["error"] = {"what": "bug", "errno": 0, "text": f"{type(error).__name__}: {error}"}
        try:
            socket.send_fds(self.channel, [json.dumps(reply).encode()], given)
        except BrokenPipeError:
            return False
        finally:
            for fd in fds + given:
                os.close(fd)
        return True

    def op_open(self, request: Any, _: list[int]) -> tuple[Any, list[int]]:
        """Make the namespace and its device."""
        rootless = enter_namespaces()
        device = make_device(request["kind"], request["mtu"])
        return {"rootless": rootless, "mtu": request["mtu"], **device}, []

    def op_open_loopback(self, request: Any, _: list[int]) -> tuple[Any, list[int]]:
        """Make the namespace that is sender and receiver at once."""
        rootless = enter_namespaces()
        return {"rootless": rootless, "mtu": request["mtu"], **make_loopback(request["mtu"])}, []

    def op_open_sender(self, _request: Any, _: list[int]) -> tuple[Any, list[int]]:
        """Make the sender's namespace; the receiver settles in the same user namespace."""
        rootless = enter_namespaces()
        users = [os.open("/proc/self/ns/user", os.O_RDONLY)] if rootless else []
        return {"rootless": rootless}, users

    def op_open_receiver(self, _request: Any, users: list[int]) -> tuple[Any, list[int]]:
        """Make the receiver's namespace, to which the sender's device shall lead."""
        settle_beside(users[0] if users else None)
        return {}, [os.open("/proc/self/ns/net", os.O_RDONLY)]

    def op_connect(self, _request: Any, fds: list[int]) -> tuple[Any, list[int]]:
        """Make the sender's device; `fds` has the receiver's namespace."""
        self.receiver = os.dup(fds[0])
        make_way(fds[0])
        return {}, []

    def op_receive(self, request: Any, _: list[int]) -> tuple[Any, list[int]]:
        """Bring the receiver's device up."""
        make_end(request["mtu"])
        return {}, []

    def op_send(self, request: Any, _: list[int]) -> tuple[Any, list[int]]:
        """Bring the sender's device up."""
        return make_begin(request["mtu"]), []

    def op_divert(self, request: Any, _: list[int]) -> tuple[Any, list[int]]:
        """Make what a relay needs on the receiver's machine: devices, and a socket for each.

        The relay is a program like others, which may not open them where a user is not root.
        """
        raw = [socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0) for _ in range(2)]
        make_detour(request["mtu"])
        facts = {"source": VETH_PEER, "target": RELAY, "link": DESTINATION_MAC}
        return facts, [one.detach() for one in raw]

    def op_turn(self, _request: Any, _: list[int]) -> tuple[Any, list[int]]:
        """Have what arrives taken by the relay alone."""
        turn(NOBODYS_MAC)
        return {}, []

    def op_restore(self, _request: Any, _: list[int]) -> tuple[Any, list[int]]:
        """Have what arrives taken by the receiver's device again."""
        from pyroute2 import IPRoute

        turn(DESTINATION_MAC)
        with IPRoute() as routes:
            routes.link("del", index=routes.link_lookup(ifname=RELAY)[0])
        return {}, []

    def op_runs(self, request: Any, _: list[int]) -> tuple[Any, list[int]]:
        """Say how many packets a message has at most that a device is given; return the former."""
        from pyroute2 import IPRoute

        with IPRoute() as routes:
            index = routes.link_lookup(ifname=request["device"])[0]
            (link,) = routes.get_links(index)
            routes.link("set", index=index, gso_max_segs=request["packets"])
        return {"packets": link.get_attr("IFLA_GSO_MAX_SEGS")}, []

    def op_join(self, request: Any, fds: list[int]) -> tuple[Any, list[int]]:
        """Enter the namespace of a lab that stays; `fds` are what its keeper gave."""
        enter(*fds)
        return request["facts"], []

    def op_network(self, _request: Any, fds: list[int]) -> tuple[Any, list[int]]:
        """Say which network this is; or that of a lab whose keeper was killed, in `fds`."""
        for net in fds:
            enter_left(net)
        there = os.stat("/proc/self/ns/net")
        return {"device": there.st_dev, "inode": there.st_ino, "cookie": cookie()}, []

    def op_keep(self, request: Any, fds: list[int]) -> tuple[Any, list[int]]:
        """Have the lab stay, with a process of its own; `fds` has the folder for its socket."""
        (folder,) = fds
        name = request["name"]
        others = [] if self.receiver is None else [self.receiver]
        path = f"/proc/self/fd/{folder}/{name}"
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
            listener.bind(path)
            try:
                listener.listen()
                self.keeper = subprocess.Popen(
                    [sys.executable, "-I", "-S", os.path.join(os.path.dirname(__file__), KEEPER),
                     str(listener.fileno()), str(folder), name, json.dumps(request["facts"]),
                     *map(str, others)],
                    pass_fds=[listener.fileno(), folder, *others],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    cwd="/",
                    start_new_session=True,  # neither a terminal's end nor its keys reach it
                )  # fmt: skip
            except OSError:
                os.unlink(path)
                raise
        return {}, []

    def op_probe(self, _request: Any, _: list[int]) -> tuple[Any, list[int]]:
        """Make a namespace and try every kind of device in it."""
        rootless = enter_namespaces()
        return {"rootless": rootless, "kinds": offered_kinds()}, []

    def op_socket(self, request: Any, _: list[int]) -> tuple[Any, list[int]]:
        """Make a socket that belongs to this namespace."""
        made = socket.socket(request["family"], request["kind"])
        return {}, [made.detach()]

    def op_read(self, request: Any, _: list[int]) -> tuple[Any, list[int]]:
        """Read one of the kernel's tables about this namespace."""
        with open(f"/proc/self/net/{request['table']}") as file:
            return {"text": file.read()}, []

    def op_facts(self, request: Any, _: list[int]) -> tuple[Any, list[int]]:
        """Read what there is to know about the device."""
        return device_facts(request["device"]), []

    def op_link(self, request: Any, _: list[int]) -> tuple[Any, list[int]]:
        """Take the device down, or bring it up again."""
        from pyroute2 import IPRoute

        with IPRoute() as routes:
            index = routes.link_lookup(ifname=request["device"])[0]
            routes.link("set", index=index, state="up" if request["up"] else "down")
            if request["up"]:
                (lead_back if request["device"] == LOOPBACK else lead_to)(routes, index)
        return {}, []

    def op_limit(self, request: Any, _: list[int]) -> tuple[Any, list[int]]:
        """Limit the rate of the device, or do so no longer."""
        from pyroute2 import IPRoute

        with IPRoute() as routes:
            index = routes.link_lookup(ifname=request["device"])[0]
            limit_rate(routes, index, request["bytes_per_s"])
        return {}, []

    def op_backlog(self, request: Any, _: list[int]) -> tuple[Any, list[int]]:
        """Count the bytes that wait before the device."""
        from pyroute2 import IPRoute

        with IPRoute() as routes:
            queues = list(routes.get_qdiscs(index=routes.link_lookup(ifname=request["device"])[0]))
        counts = [queue.get_nested("TCA_STATS2", "TCA_STATS_QUEUE") for queue in queues]
        return {"bytes": sum(count["backlog"] for count in counts if count)}, []

    def op_popen(self, request: Any, fds: list[int]) -> tuple[Any, list[int]]:
        """Start a program; `fds` are the pipe for its status, and its three streams."""
        status, stdin, stdout, stderr = fds
        helper = os.getpid()

        def die_with_helper() -> None:
            libc.prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
            if os.getppid() != helper:
                os._exit(1)

        program = subprocess.Popen(
            request["argv"],
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            env=request["env"],
            cwd=request["cwd"],
            preexec_fn=die_with_helper,  # safe: this process has one thread
        )
        self.programs[request["token"]] = (program, os.dup(status))
        return {"pid": program.pid}, []

    def op_signal(self, request: Any, _: list[int]) -> tuple[Any, list[int]]:
        """Send a signal to a program that has not ended yet."""
        program = self.programs.get(request["token"])
        if program is not None:
            os.kill(program[0].pid, request["signal"])
        return {}, []

    def reap(self) -> None:
        """Collect all programs that ended, and tell the caller how."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            self.ended(pid, status)

    def ended(self, pid: int, status: int) -> None:
        """Write a program's status into the pipe that the caller waits on."""
        for token, (program, pipe) in self.programs.items():
            if program.pid == pid:
                program.returncode = os.waitstatus_to_exitcode(status)
                with contextlib.suppress(BrokenPipeError):
                    os.write(pipe, str(program.returncode).encode())
                os.close(pipe)
                del self.programs[token]
                return

    def is_keeper(self, pid: int) -> bool:
        return self.keeper is not None and self.keeper.pid == pid

    def end_programs(self) -> None:
        """Kill what runs in the lab, and what that leaves behind, until nothing is left."""
        while True:
            self.reap()
            running = [pid for pid in children() if not self.is_keeper(pid)]
            if not running:
                return
            for pid in running:
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
            self.ended(*os.waitpid(-1, 0))


if __name__ == "__main__":
    if sys.argv[1] == "enter":
        enter_and_execute([int(fd) for fd in sys.argv[2].split(",")], sys.argv[3:])
    Helper(socket.socket(fileno=int(sys.argv[1])), int(sys.argv[2])).serve()
    os._exit(0)  # nothing is left to tidy, and the caller waits
