# SPDX-License-Identifier: BSD-3-Clause
# mypy: disable-error-code="import-untyped"
"""Where it would go: what keeps packets inside the machine."""

import dataclasses
import ipaddress
import socket
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from .device import ALIAS, DEVICE
from .refusal import LabError

__all__ = ["check_destination", "route_device"]

_IFF_LOOPBACK = 0x8


@dataclasses.dataclass(frozen=True, slots=True)
class _Link:
    """What the kernel says about a network device."""

    name: str
    loopback: bool
    kind: str | None
    peer: int | None
    leads_elsewhere: bool
    alias: str | None = None


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
        entries = socket.getaddrinfo(host, None, type=socket.SOCK_DGRAM)
    except (OSError, UnicodeError):
        raise LabError(f"no address is known for the host {host!r}") from None
    addresses = []
    for _, _, _, _, place in entries:
        address = ipaddress.ip_address(str(place[0]).partition("%")[0])
        scope = int(place[3]) if len(place) == 4 else 0
        # An IPv6 socket sends to such an address by IPv4.
        if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
            address = address.ipv4_mapped
        addresses.append((address, scope))
    return addresses


def _route_index(address: ipaddress.IPv4Address | ipaddress.IPv6Address, scope: int) -> int | None:
    """Return the index of the device on the route to an address, or None without a route."""
    from pyroute2.netlink.exceptions import NetlinkError

    family = socket.AF_INET if address.version == 4 else socket.AF_INET6
    wanted = {"dst": str(address), "family": family} | ({"oif": scope} if scope else {})
    try:
        (route,) = _ask_kernel(lambda routes: list(routes.route("get", **wanted)))
    except NetlinkError:
        return None
    index: int | None = route.get_attr("RTA_OIF")
    return index


def _link(index: int) -> _Link:
    """Look a device up by its index."""
    (link,) = _ask_kernel(lambda routes: list(routes.get_links(index)))
    info = link.get_attr("IFLA_LINKINFO")
    elsewhere = (link.get_attr("IFLA_LINK_NETNSID"), link.get_attr("IFLA_MASTER"))
    return _Link(
        name=link.get_attr("IFLA_IFNAME"),
        loopback=bool(link["flags"] & _IFF_LOOPBACK),
        kind=None if info is None else info.get_attr("IFLA_INFO_KIND"),
        peer=link.get_attr("IFLA_LINK"),
        leads_elsewhere=elsewhere != (None, None),
        alias=link.get_attr("IFLA_IFALIAS"),
    )


def _ask_kernel(question: Callable[[Any], list[Any]]) -> list[Any]:
    """Ask rtnetlink something, in a thread: pyroute2 refuses one in which an event loop runs."""
    from pyroute2 import IPRoute

    def ask() -> list[Any]:
        with IPRoute() as routes:
            return question(routes)

    with ThreadPoolExecutor(1) as executor:
        return executor.submit(ask).result()


def _stays_inside(link: _Link) -> bool:
    """Say whether nothing that is sent into a device comes out of the machine."""
    if link.loopback or link.kind in ("dummy", "ifb"):
        return True
    # A veth is also how a container reaches the world: only a lab's own is harmless. Both its
    # ends are here, and connected to nothing, or the other one is the lab's receiver's.
    if link.kind != "veth" or link.name != DEVICE:
        return False
    if link.alias == ALIAS:
        return True
    if link.leads_elsewhere or not link.peer:
        return False
    return not _link(link.peer).leads_elsewhere
