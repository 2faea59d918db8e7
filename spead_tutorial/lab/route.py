# SPDX-License-Identifier: BSD-3-Clause
# mypy: disable-error-code="import-untyped"
"""Where a packet would go: what keeps all of them inside the machine."""

import ipaddress
import socket
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from .device import ALIAS, DEVICE, LabError

_IFF_LOOPBACK = 0x8
_Address = ipaddress.IPv4Address | ipaddress.IPv6Address


def check_destination(
    host: str, *, device: str | None = None, allow_real_network: bool = False
) -> None:
    """Refuse a host to which packets would leave through a real interface.

    The kernel is asked for its route, in the network namespace of this process; nothing is sent
    (except to find the addresses of a name).
    Loopback is fine, and so is a device that throws everything away: a dummy, an ifb, or a
    lab's veth. A host to which there is no route passes: sending to it is an error anyway.

    Parameters
    ----------
    host : str
        An address, IPv4 or IPv6, also of a multicast group; or a name, every address of which is
        looked at.
    device : str, optional
        The device to send out of, where that is not the route's, as for a multicast group.
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
        link = _link_to(address, scope) if device is None else _link_named(device)
        if link and not _stays_inside(link):
            raise LabError(
                f"{host} is reached through {link.get_attr('IFLA_IFNAME')}, a real network"
                " interface: send to loopback or in a lab, or say --allow-real-network"
            )


def _addresses(host: str) -> list[tuple[_Address, int]]:
    """Return the addresses of a host, each with its scope (0 where it has none)."""
    try:
        entries = socket.getaddrinfo(host, None, type=socket.SOCK_DGRAM)
    except (OSError, UnicodeError):
        raise LabError(f"no address is known for the host {host!r}") from None
    addresses = []
    for *_, place in entries:
        address = ipaddress.ip_address(str(place[0]).partition("%")[0])
        scope = int(place[3]) if len(place) == 4 else 0
        # An IPv6 socket sends to such an address by IPv4.
        if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
            address = address.ipv4_mapped
        addresses.append((address, scope))
    return addresses


def _link_to(address: _Address, scope: int) -> Any:
    """Return what the kernel says of the device on the route to an address, or None without one."""
    from pyroute2.netlink.exceptions import NetlinkError

    family = socket.AF_INET if address.version == 4 else socket.AF_INET6
    wanted = {"dst": str(address), "family": family} | ({"oif": scope} if scope else {})
    try:
        (route,) = _ask_kernel(lambda routes: list(routes.route("get", **wanted)))
    except NetlinkError:
        return None
    index = route.get_attr("RTA_OIF")
    return None if index is None else _link(index)


def _link(index: int) -> Any:
    (link,) = _ask_kernel(lambda routes: list(routes.get_links(index)))
    return link


def _link_named(device: str) -> Any:
    (index,) = _ask_kernel(lambda routes: list(routes.link_lookup(ifname=device)))
    return _link(index)


def _ask_kernel(question: Callable[[Any], list[Any]]) -> list[Any]:
    """Ask rtnetlink something, in a thread: pyroute2 refuses one in which an event loop runs."""
    from pyroute2 import IPRoute

    def ask() -> list[Any]:
        with IPRoute() as routes:
            return question(routes)

    with ThreadPoolExecutor(1) as executor:
        return executor.submit(ask).result()


def _stays_inside(link: Any) -> bool:
    """Say whether nothing that is sent into a device comes out of the machine."""
    info = link.get_attr("IFLA_LINKINFO")
    kind = info and info.get_attr("IFLA_INFO_KIND")
    if link["flags"] & _IFF_LOOPBACK or kind in ("dummy", "ifb"):
        return True
    # A veth is also how a container reaches the world: only a lab's own is harmless. Both its
    # ends are here, and connected to nothing, or the other one is a lab's receiver's or switch's.
    if kind == "veth" and link.get_attr("IFLA_IFALIAS") == ALIAS:
        return True
    if kind != "veth" or link.get_attr("IFLA_IFNAME") != DEVICE:
        return False
    peer = link.get_attr("IFLA_LINK")
    return bool(peer) and not _leads_elsewhere(link) and not _leads_elsewhere(_link(peer))


def _leads_elsewhere(link: Any) -> bool:
    """Whether a device is part of a bridge, or its other end is in another network."""
    return (link.get_attr("IFLA_LINK_NETNSID"), link.get_attr("IFLA_MASTER")) != (None, None)
