# SPDX-License-Identifier: BSD-3-Clause
"""Where it would go: what keeps packets inside the machine."""

import dataclasses
import ipaddress
import os
import socket
import struct
import sys

from .device import DEVICE
from .refusal import LabError

__all__ = ["check_destination", "route_device"]

_RTM_GETLINK, _RTM_GETROUTE = 18, 26
_NLMSG_ERROR, _NLM_F_REQUEST = 2, 1
_RTA_DST, _RTA_OIF = 1, 4
_IFLA_IFNAME, _IFLA_LINK, _IFLA_MASTER, _IFLA_LINKINFO, _IFLA_LINK_NETNSID = 3, 5, 10, 18, 37
_IFLA_INFO_KIND = 1
_IFF_LOOPBACK = 0x8
_RTMSG = struct.Struct("=8BI")
_IFINFOMSG = struct.Struct("=BxHiII")


@dataclasses.dataclass(frozen=True, slots=True)
class _Link:
    """What the kernel says about a network device."""

    name: str
    loopback: bool
    kind: str | None
    peer: int | None
    leads_elsewhere: bool


def route_device(host: str) -> str | None:
    """Name the device out of which this process would send to a host.

    The kernel is asked for its route, in the network namespace of this process; nothing is
    sent (except to find the address of a host that is given by name).

    Parameters
    ----------
    host : str
        An address, IPv4 or IPv6, multicast too, or a name.

    Returns
    -------
    str or None
        The device's name; ``"lo"`` for this machine's own addresses; None where there is
        no route.
    """
    for address, scope in _addresses(host):
        index = _route_index(address, scope)
        if index is not None:
            return _link(index).name
    return None


def check_destination(host: str, *, allow_real_network: bool = False) -> None:
    """Refuse a host to which packets would leave through a real interface.

    Loopback is fine, and so is a device that throws everything away: a dummy, an ifb, or a
    lab's veth. A host to which there is no route passes: sending to it is an error anyway.

    Parameters
    ----------
    host : str
        The destination, as for `route_device`. Of a name every address is looked at.
    allow_real_network : bool
        Whether the user asked for it by name; then everything passes.

    Raises
    ------
    LabError
        The text names the device and the option.
    """
    if allow_real_network:
        return
    for address, scope in _addresses(host):
        index = _route_index(address, scope)
        if index is None:
            continue
        link = _link(index)
        if not _stays_inside(link):
            raise LabError(
                f"{host} is reached through {link.name}, a real network interface: send to"
                " loopback or in a lab, or say --allow-real-network"
            )


def _addresses(
    host: str,
) -> list[tuple[ipaddress.IPv4Address | ipaddress.IPv6Address, int]]:
    """Return the addresses of a host, each with its scope (0 where it has none)."""
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_DGRAM)
    except (OSError, UnicodeError):
        raise LabError(f"no address is known for the host {host!r}") from None
    addresses = []
    for _, _, _, _, place in found:
        address = ipaddress.ip_address(str(place[0]).partition("%")[0])
        scope = int(place[3]) if len(place) == 4 else 0
        # An IPv6 socket sends to such an address by IPv4.
        if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
            address = address.ipv4_mapped
        addresses.append((address, scope))
    return addresses


def _route_index(address: ipaddress.IPv4Address | ipaddress.IPv6Address, scope: int) -> int | None:
    """Return the index of the device on the route to an address, or None without a route."""
    family = socket.AF_INET if address.version == 4 else socket.AF_INET6
    body = _RTMSG.pack(family, address.max_prefixlen, 0, 0, 0, 0, 0, 0, 0)
    body += _attribute(_RTA_DST, address.packed)
    if scope:
        body += _attribute(_RTA_OIF, struct.pack("=I", scope))
    try:
        reply = _ask_kernel(_RTM_GETROUTE, body)
    except OSError:
        return None
    index = _attributes(reply[_RTMSG.size :]).get(_RTA_OIF)
    return None if index is None else int.from_bytes(index, sys.byteorder)


def _link(index: int) -> _Link:
    """Look a device up by its index."""
    reply = _ask_kernel(_RTM_GETLINK, _IFINFOMSG.pack(socket.AF_UNSPEC, 0, index, 0, 0))
    flags = _IFINFOMSG.unpack_from(reply)[3]
    found = _attributes(reply[_IFINFOMSG.size :])
    info = _attributes(found.get(_IFLA_LINKINFO, b""))
    kind = info.get(_IFLA_INFO_KIND)
    peer = found.get(_IFLA_LINK)
    return _Link(
        name=found[_IFLA_IFNAME].rstrip(b"\0").decode(),
        loopback=bool(flags & _IFF_LOOPBACK),
        kind=None if kind is None else kind.rstrip(b"\0").decode(),
        peer=None if peer is None else int.from_bytes(peer, sys.byteorder),
        leads_elsewhere=_IFLA_LINK_NETNSID in found or _IFLA_MASTER in found,
    )


def _stays_inside(link: _Link) -> bool:
    """Say whether nothing that is sent into a device comes out of the machine."""
    if link.loopback or link.kind in ("dummy", "ifb"):
        return True
    # A veth is also how a container reaches the world: only a lab's own is harmless, both
    # ends of which are here, and connected to nothing.
    if link.kind != "veth" or link.name != DEVICE or link.leads_elsewhere or not link.peer:
        return False
    return not _link(link.peer).leads_elsewhere


def _ask_kernel(message: int, body: bytes) -> bytes:
    """Send a request to rtnetlink and return the one message it answers with."""
    header = struct.Struct("=IHHII")
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as sock:
        sock.bind((0, 0))
        sock.send(header.pack(header.size + len(body), message, _NLM_F_REQUEST, 1, 0) + body)
        reply = sock.recv(1 << 17)
    length, kind, *_ = header.unpack_from(reply)
    if kind == _NLMSG_ERROR:
        number = -int(struct.unpack_from("=i", reply, header.size)[0])
        raise OSError(number, os.strerror(number))
    return reply[header.size : length]


def _attribute(kind: int, value: bytes) -> bytes:
    """Encode one netlink attribute; `value` has whole words."""
    return struct.pack("=HH", 4 + len(value), kind) + value


def _attributes(data: bytes) -> dict[int, bytes]:
    """Decode a sequence of netlink attributes."""
    found = {}
    while len(data) >= 4:
        length, kind = struct.unpack_from("=HH", data)
        if length < 4:
            break
        found[kind & 0x3FFF] = data[4:length]
        data = data[(length + 3) & ~3 :]
    return found
