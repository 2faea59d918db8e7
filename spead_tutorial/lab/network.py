# SPDX-License-Identifier: BSD-3-Clause
# mypy: disable-error-code="import-untyped"
"""The devices of the network that this process is in, and the routes to them.

The lab's `helper` calls what has no underscore for its caller, with the caller's arguments.
"""

import contextlib
import errno
from collections.abc import Iterator, Sequence
from typing import Any

from pyroute2 import IPRoute
from pyroute2.ethtool.ioctl import IoctlEthtool, NotSupportedError
from pyroute2.netlink.exceptions import NetlinkError

from .device import (
    ADDRESS,
    ADDRESS6,
    ALIAS,
    DEVICE,
    FAR_DEVICE,
    FAR_MAC,
    KINDS,
    RELAY,
    RefusedError,
)

_IFF_UP, _IFF_NOARP, _IFF_MULTICAST = 0x1, 0x80, 0x1000
IFA_F_NODAD = 0x02
_ADDR_GEN_MODE_NONE = 1

_RELAYED = "relay1"  # the other end of what a relay sends into
_OWN, _OWN6 = ("192.168.31.1", 24), ("fd00:31::1", 64)
_MAC, _NOBODYS_MAC = "02:00:00:00:1f:01", "02:00:00:00:1f:03"
#: Bytes that pass a limited link at once, after it had nothing to do: more than the largest message
#: of the kernel's with all its headers, which would be cut otherwise, and counted in pieces.
_BURST = 1 << 17
#: Bytes that may wait before a limited link: far more than the send buffers of a few sockets, so
#: that it is the sender that waits, as behind a real card, and nothing is dropped.
_BACKLOG = 1 << 26
#: Features that decide how far a GSO message gets in one piece, and who computes its checksums.
_OFFLOADS = (
    "tx-udp-segmentation",
    "tx-checksumming",
    "scatter-gather",
    "generic-segmentation-offload",
)
#: Features by which a device need not look at what it is sent, and one that some have besides:
#: ``tx-checksumming`` is on as long as a checksum of any kind is promised.
_PROMISES, _MORE_PROMISES = ("tx-udp-segmentation", "tx-checksum-ip-generic"), ("tx-checksum-sctp",)


@contextlib.contextmanager
def asking(what: str = "device") -> Iterator[Any]:
    """Ask the kernel by netlink; what it refuses is `what`."""
    try:
        with IPRoute() as routes:
            yield routes
    except NetlinkError as error:
        raise RefusedError(what, error.code) from error


def index_of(routes: Any, name: str) -> int:
    return int(routes.link_lookup(ifname=name)[0])


# ---- Making devices ----


def make_device(kind: str | None, mtu: int) -> dict[str, Any]:
    """Make the lab's device, of the first kind that the kernel offers or of a forced one."""
    with asking() as routes:
        routes.link("set", index=1, state="up")  # lo is always the first
        made = make_link(routes, DEVICE, KINDS if kind is None else (kind,), mtu)
        return {"kind": made, "device": DEVICE, "ipv6": _lead_to(routes, DEVICE)}


def make_loopback(mtu: int) -> dict[str, Any]:
    """Let the address that programs send to lead back to this network."""
    with asking() as routes:
        routes.link("set", index=1, mtu=mtu, state="up")
        _lead_back(routes)
    return {"kind": "loopback", "device": "lo", "ipv6": False}


def make_far_end(sender: int, mtu: int) -> None:
    """Make the receiver's device, the other end of which is in the network of a process."""
    with asking() as routes, open(f"/proc/{sender}/ns/net") as network:
        routes.link("set", index=1, state="up")
        near = {"ifname": DEVICE, "net_ns_fd": network.fileno()}
        if not add_link(routes, FAR_DEVICE, "veth", peer=near):
            raise RefusedError("way", errno.EOPNOTSUPP)
        _without_ipv6(FAR_DEVICE)
        index = _bring_up(routes, FAR_DEVICE, mtu, address=FAR_MAC)
        routes.addr("replace", index=index, address=ADDRESS, prefixlen=_OWN[1])
        routes.route("replace", dst="224.0.0.0/4", oif=index)
        _add_neighbour(routes, index, _OWN[0], _MAC)


def make_near_end(mtu: int) -> dict[str, Any]:
    """Bring the sender's device up, after the receiver's: so it takes packets at once."""
    with asking() as routes:
        routes.link("set", index=1, state="up")
        _without_ipv6(DEVICE)
        _bring_up(routes, DEVICE, mtu, address=_MAC, ifalias=ALIAS)
        return {"kind": "veth", "device": DEVICE, "ipv6": _lead_to(routes, DEVICE)}


def offered_kinds() -> list[str]:
    """Find out which kinds of device this kernel makes, by making one of each."""
    kinds = []
    with asking() as routes:
        for number, kind in enumerate(KINDS):
            if add_link(routes, f"probe{number}", kind):
                kinds.append(kind)
                routes.link("del", index=index_of(routes, f"probe{number}"))
    return kinds


def make_link(routes: Any, name: str, kinds: Sequence[str], mtu: int) -> str:
    """Make a device of the first kind that the kernel offers, and return that."""
    for made in kinds:
        if add_link(routes, name, made, peer={"ifname": FAR_DEVICE}):
            break
    else:
        raise RefusedError("kind", errno.EOPNOTSUPP, kinds[0] if len(kinds) == 1 else None)
    if made == "veth":
        # Only sending and dropping happen there: IPv6 would add a second route for multicast,
        # out of the wrong end.
        _without_ipv6(FAR_DEVICE)
        _bring_up(routes, FAR_DEVICE, mtu)
    _bring_up(routes, name, mtu)
    return made


def add_link(routes: Any, name: str, kind: str, **more: Any) -> bool:
    """Make a device, a veth with its peer; return False where the kernel does not know the kind."""
    try:
        routes.link("add", ifname=name, kind=kind, **more if kind == "veth" else {})
    except NetlinkError as error:
        if error.code in (errno.EOPNOTSUPP, errno.ENODEV, errno.ENOENT):
            return False
        raise
    return True


def _bring_up(routes: Any, name: str, mtu: int, **more: Any) -> int:
    """Bring a device up such that it never sends anything by itself; return its index."""
    index = index_of(routes, name)
    # No link-local address, no neighbour discovery, no group membership: without these
    # the kernel has nothing to say on the device, and its counters hold only what was sent.
    quiet = {"attrs": [("IFLA_INET6_ADDR_GEN_MODE", _ADDR_GEN_MODE_NONE)]}
    with contextlib.suppress(NetlinkError):  # A kernel without IPv6 is quiet anyway.
        routes.link("set", index=index, IFLA_AF_SPEC={"attrs": [("AF_INET6", quiet)]})
    up = _IFF_UP | _IFF_NOARP
    routes.link("set", index=index, mtu=mtu, flags=up, change=up | _IFF_MULTICAST, **more)
    # An ifb gets a queue of 32 packets by default, and loses some there, uncounted, as soon
    # as two threads send. dummy and veth have no queue; so has this one now.
    with contextlib.suppress(NetlinkError):
        routes.tc("replace", "noqueue", index)
    return index


# ---- Addresses and routes ----


def _lead_to(routes: Any, name: str) -> bool:
    """Let addresses and routes lead to a device that is up; return whether those of IPv6 do."""
    index = index_of(routes, name)
    routes.addr("replace", index=index, address=_OWN[0], prefixlen=_OWN[1])
    routes.route("replace", dst="224.0.0.0/4", oif=index)
    _add_neighbour(routes, index, ADDRESS)
    try:
        routes.addr(
            "replace", index=index, address=_OWN6[0], prefixlen=_OWN6[1], IFA_FLAGS=IFA_F_NODAD
        )
        _add_neighbour(routes, index, ADDRESS6)
    except NetlinkError:
        return False
    return True


def _lead_back(routes: Any) -> None:
    routes.addr("replace", index=1, address=ADDRESS, prefixlen=32)
    routes.route("replace", dst="224.0.0.0/4", oif=1)


def _add_neighbour(routes: Any, index: int, address: str, link: str = FAR_MAC) -> None:
    """Say once for all where an address is: otherwise the kernel asks for it on the device."""
    routes.neigh("replace", index=index, dst=address, lladdr=link, state="permanent")


def _without_ipv6(name: str) -> None:
    write_quietly(f"/proc/sys/net/ipv6/conf/{name}/disable_ipv6", "1")


def write_quietly(path: str, text: str) -> None:
    """Write a sysctl where it exists and may be written."""
    with contextlib.suppress(OSError), open(path, "w") as file:
        file.write(text)


# ---- A device that is there ----


def device_facts(device: str) -> dict[str, Any]:
    """Read what the kernel will do with what is sent into a device; None is not known."""
    with asking() as routes:
        (link,) = routes.get_links(index_of(routes, device))
    return {
        "mtu": link.get_attr("IFLA_MTU"),
        "qdisc": link.get_attr("IFLA_QDISC"),
        "tx_queue_length": link.get_attr("IFLA_TXQLEN"),
        "gso_max_size": link.get_attr("IFLA_GSO_MAX_SIZE"),
        "gso_max_segs": link.get_attr("IFLA_GSO_MAX_SEGS"),
        "offloads": _offloads(device),
    }


def _offloads(name: str) -> dict[str, bool | None]:
    """Read a device's features that matter to a sender, by the names of ``ethtool -k``."""
    features: dict[str, bool | None] = dict.fromkeys(_OFFLOADS)
    with contextlib.closing(IoctlEthtool(name)) as device:
        for read in (device.get_features, device.get_offload_flags):
            with contextlib.suppress(OSError, NotSupportedError):
                known = read()
                features |= {one: bool(known[one]) for one in _OFFLOADS if one in known}
    return features


def set_features(name: str, on: bool) -> None:
    """Let a device promise to cut messages and to compute checksums, or have the kernel do both."""
    try:
        with contextlib.closing(IoctlEthtool(name)) as device:
            features = device.get_features()
            for one in (*_PROMISES, *filter(features.is_available, _MORE_PROMISES)):
                features[one] = on
            device.set_features(features)
    except (OSError, NotSupportedError, KeyError) as error:
        raise RefusedError("features", getattr(error, "errno", None) or errno.EOPNOTSUPP) from error


def set_link(device: str, up: bool) -> None:
    with asking() as routes:
        routes.link("set", index=index_of(routes, device), state="up" if up else "down")
        if up and device == "lo":
            _lead_back(routes)
        elif up:
            _lead_to(routes, device)


def limit_rate(device: str, bytes_per_s: int, waiting: int = _BACKLOG) -> None:
    """Let a device send that much and no more, by a token bucket; at 0 what it can, as before."""
    limit = {"rate": bytes_per_s, "burst": _BURST, "limit": waiting} if bytes_per_s else {}
    with asking("limit") as routes:
        routes.tc("replace", "tbf" if limit else "noqueue", index_of(routes, device), **limit)


def backlog(device: str) -> int:
    """Count the bytes that wait before a device."""
    return _of_queues(device, "backlog")


def queue_drops(device: str) -> int:
    """Count the packets, or runs of them, that a device's queue had no room for."""
    return _of_queues(device, "drops")


def _of_queues(device: str, what: str) -> int:
    with asking() as routes:
        queues = list(routes.get_qdiscs(index=index_of(routes, device)))
    counts = [queue.get_nested("TCA_STATS2", "TCA_STATS_QUEUE") for queue in queues]
    return sum(count[what] for count in counts if count)


def limit_run(device: str, packets: int) -> None:
    """Say how many packets a message has at most that a device is given."""
    with asking() as routes:
        routes.link("set", index=index_of(routes, device), gso_max_segs=packets)


# ---- A detour, by a relay on the receiver's machine ----


def make_detour(mtu: int) -> None:
    """Make two devices: what is sent into the first arrives at the second, as at the receiver's."""
    # Otherwise what arrives at a device by which no answer would leave is dropped.
    for name in ("all", "default"):
        write_quietly(f"/proc/sys/net/ipv4/conf/{name}/rp_filter", "0")
    with asking() as routes:
        add_link(routes, RELAY, "veth", peer={"ifname": _RELAYED})
        for name, link in ((_RELAYED, FAR_MAC), (RELAY, _NOBODYS_MAC)):
            _without_ipv6(name)
            _bring_up(routes, name, mtu, address=link)


def take_detour() -> None:
    """Have what arrives taken by the relay alone, for the receiver's device has another address."""
    with asking() as routes:
        routes.link("set", index=index_of(routes, FAR_DEVICE), address=_NOBODYS_MAC)


def end_detour() -> None:
    """Have what arrives taken by the receiver's device again."""
    with asking() as routes:
        routes.link("set", index=index_of(routes, FAR_DEVICE), address=FAR_MAC)
        routes.link("del", index=index_of(routes, RELAY))
