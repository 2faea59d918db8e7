# SPDX-License-Identifier: BSD-3-Clause
# mypy: disable-error-code="import-untyped"
"""The switch that joins a lab's machines, in the network of the lab's helper, and what it loses.

As in `network`, the helper calls what has no underscore, with its caller's arguments.
"""

import ctypes
import errno
import functools
import json
from typing import Any

from .array import CONTROL, CONTROL_DEVICE, DATA, DATA_DEVICE, SWITCH, address, port
from .device import ALIAS, RefusedError
from .namespaces import held, inside
from .network import add_link, asking, index_of, limit_rate, write_quietly

#: Bytes that wait before a limited port of the switch: what comes faster for longer is dropped.
_SWITCH_BUFFER = 1 << 18
#: Hundredths of a second that machines have to say which groups they are in, when they are asked.
#: Until then the switch floods.
_ANSWER_CS = 20
_IN_JSON = 1 << 4  # of libnftables
_MILLION = 1_000_000  # in which shares are counted


# ---- Making it ----


def join_machines(mtu: int) -> None:
    """Join the networks that are held by a switch for data, and by another one for control."""
    for network in held:
        with inside(network):
            _quiet()
    _quiet()
    with asking() as routes:
        routes.link("set", index=1, state="up")
        for bridge in (SWITCH, CONTROL_DEVICE):
            if not add_link(routes, bridge, "bridge"):
                raise RefusedError("switch", errno.EOPNOTSUPP)
        for i in range(len(held)):
            _add_cable(routes, i, (port(i), DATA_DEVICE, SWITCH), mtu)
            _add_cable(routes, i, (f"aside{i}", CONTROL_DEVICE, CONTROL_DEVICE), 1500)
        _have_snooping(routes, mtu)
        own = index_of(routes, CONTROL_DEVICE)
        routes.addr("replace", index=own, address=address(CONTROL), prefixlen=CONTROL.prefixlen)
        routes.link("set", index=own, state="up")
    for i, network in enumerate(held):
        with inside(network):
            _bring_up(i)


def _quiet() -> None:
    """Have devices that come say nothing by IPv6."""
    for name in ("all", "default"):
        write_quietly(f"/proc/sys/net/ipv6/conf/{name}/disable_ipv6", "1")


def _add_cable(routes: Any, machine: int, names: tuple[str, str, str], mtu: int) -> None:
    """Lay a cable from a port of a bridge to a device of a machine."""
    near, far, bridge = names
    # Runs of packets are cut before they leave a machine, so that all on the way counts packets.
    single = {"mtu": mtu, "gso_max_segs": 1}
    peer = {"ifname": far, "net_ns_fd": held[machine], **single}
    if not add_link(routes, near, "veth", peer=peer, **single):
        raise RefusedError("way", errno.EOPNOTSUPP)
    index = index_of(routes, near)
    routes.link("set", index=index, master=index_of(routes, bridge), state="up")


def _have_snooping(routes: Any, mtu: int) -> None:
    """Have the switch send groups to their members alone: without a querier it would flood."""
    index = index_of(routes, SWITCH)
    # How soon they answer comes first: the first question is asked at once.
    for setting in (
        {"br_mcast_snooping": 1, "br_mcast_query_response_intvl": _ANSWER_CS},
        {"br_mcast_querier": 1},
    ):
        routes.link("set", index=index, kind="bridge", **setting)
    routes.link("set", index=index, mtu=mtu, state="up")


def _bring_up(machine: int) -> None:
    with asking() as routes:
        routes.link("set", index=1, state="up")
        for name, network in ((DATA_DEVICE, DATA), (CONTROL_DEVICE, CONTROL)):
            index = index_of(routes, name)
            here = address(network, machine)
            routes.addr("replace", index=index, address=here, prefixlen=network.prefixlen)
            routes.link("set", index=index, state="up")
        index = index_of(routes, DATA_DEVICE)
        routes.link("set", index=index, ifalias=ALIAS, gso_max_segs=1)
        routes.route("replace", dst="224.0.0.0/4", oif=index)


# ---- Its ports ----


def limit_port(device: str, bytes_per_s: int) -> None:
    """Let the switch send that much to a machine, and drop what its buffer has no room for."""
    limit_rate(device, bytes_per_s, _SWITCH_BUFFER)


def lose(device: str, share: float) -> None:
    """Have a share of the packets for a machine lost by chance; of 0, none any more."""
    nft("add table bridge lab")
    nft(f"add chain bridge lab {device} {{ type filter hook forward priority 0; }}")
    nft(f"flush chain bridge lab {device}")
    if share:
        least = max(1, round(share * _MILLION))
        chance = f"numgen random mod {_MILLION} < {least}" if least < _MILLION else ""
        nft(f'add rule bridge lab {device} oifname "{device}" ether type ip ip protocol udp'
            f" {chance} counter drop")  # fmt: skip


def lost(device: str) -> int:
    """Count the packets that were lost by chance since `lose`."""
    found = json.loads(nft(f"list chain bridge lab {device}"))["nftables"]
    words = [word for one in found for word in one.get("rule", {}).get("expr", ())]
    return sum(word["counter"]["packets"] for word in words if "counter" in word)


def nft(command: str) -> str:
    """Run a command of nftables in this process, as a program of its own would have no rights."""
    library, context = _nftables()
    if library.nft_run_cmd_from_buffer(context, command.encode()) != 0:
        raise RefusedError("loss", errno.EOPNOTSUPP)
    return str(library.nft_ctx_get_output_buffer(context).decode())


@functools.cache
def _nftables() -> tuple[ctypes.CDLL, ctypes.c_void_p]:
    try:
        library = ctypes.CDLL("libnftables.so.1")
    except OSError:
        raise RefusedError("loss", errno.ENOENT) from None
    library.nft_ctx_new.restype = ctypes.c_void_p
    library.nft_ctx_get_output_buffer.restype = ctypes.c_char_p
    context = ctypes.c_void_p(library.nft_ctx_new(0))
    library.nft_ctx_buffer_output(context)
    library.nft_ctx_buffer_error(context)
    library.nft_ctx_output_set_flags(context, _IN_JSON)
    return library, context
