# SPDX-License-Identifier: BSD-3-Clause
"""What devices and machines counted of packets, and whether it accounts for every one.

Devices and sockets count messages, of which one may hold a run of packets (segmentation and receive
offload). The receiver's IP layer counts packets, so that those decide.
"""

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Self

from spead_tutorial.ledger import Gap, first_complaint

from .disturbance import Disturbed

_ETHERNET_HEADER, _UDP_HEADER = 14, 8
_ICMP_MOST = 576  # what every host can receive: Linux quotes no more of a message than fits
#: Packets that the kernel puts into one message at most.
_MOST_MERGED = 128


# ---- A device ----


@dataclasses.dataclass(frozen=True, slots=True)
class Counters:
    """A device's own counters, as in ``/proc/net/dev``; two of them subtract."""

    #: Kind of the device, which says where it counts what it swallowed: ``"dummy"``, ``"ifb"``,
    #: ``"veth"`` or ``"loopback"``.
    kind: str
    rx_packets: int  #: Packets that came in.
    rx_bytes: int  #: Their bytes, which include `link_header` for each packet.
    rx_dropped: int  #: Packets that came in, and were thrown away.
    tx_packets: int  #: Packets that went out.
    tx_bytes: int  #: Their bytes, link headers included.
    tx_dropped: int  #: Packets that were to go out, and were thrown away.

    @classmethod
    def parse(cls, table: str, device: str, kind: str) -> "Counters | None":
        """Take a device's counters from the text of ``/proc/net/dev``; None where it has none.

        Parameters
        ----------
        table, device, kind : str
            The text; name and kind of the device.
        """
        for line in table.splitlines()[2:]:
            name, _, numbers = line.partition(":")
            if name.strip() == device:
                n = [int(number) for number in numbers.split()]
                return cls(kind, n[1], n[0], n[3], n[9], n[8], n[11])
        return None

    @property
    def packets(self) -> int:
        """Packets that were sent into the device; a GSO message is one of them."""
        # An ifb takes every packet for one to pass on: it counts it as received, finds
        # that there is nowhere to pass it to, and drops it. Its rx_dropped says the same
        # again, less exactly where several threads send.
        return self.rx_packets if self.kind == "ifb" else self.tx_packets

    @property
    def bytes(self) -> int:
        """Bytes that were sent into the device, link headers included."""
        return self.rx_bytes if self.kind == "ifb" else self.tx_bytes

    @property
    def link_header(self) -> int:
        """Bytes of link header that the device counts for each packet; loopback's are not."""
        return 0 if self.kind == "loopback" else _ETHERNET_HEADER

    def __sub__(self, before: "Counters") -> "Counters":
        if self.kind != before.kind:
            raise ValueError(f"counters of {self.kind} less those of {before.kind}")
        both = zip(dataclasses.astuple(self)[1:], dataclasses.astuple(before)[1:], strict=True)
        return Counters(self.kind, *(now - then for now, then in both))


@dataclasses.dataclass(frozen=True, slots=True)
class Accounting:
    """What a device counted, and what it should have counted."""

    ok: bool  #: Whether the two agree exactly.
    text: str  #: One line that says so, with the numbers.
    expected_packets: int  #: Packets that were expected of the device.
    expected_bytes: int  #: Bytes that were expected of it.
    counted_packets: int  #: Packets that it counted.
    counted_bytes: int  #: Bytes that it counted.


def accounted(
    counted_packets: int,
    counted_bytes: int,
    *,
    packets: int,
    messages: int,
    spead_bytes: int,
    ip_header: int = 20,
    link_header: int = _ETHERNET_HEADER,
    icmp_errors: int = 0,
    icmp_bytes: int = 0,
) -> Accounting:
    """Compare a device's counters with what a sender says it sent.

    The device sees what the kernel made of the sender's messages. A GSO message, which
    holds several packets, passes a lab's device and loopback whole: it is counted once,
    with one set of headers. A device that cannot take it whole gets single packets. A
    datagram beyond the MTU arrives as several IP fragments, of which only the first has
    the UDP header; the kernel never fragments a GSO message.

    On loopback, which also carries the answers, there may be no listener: then ICMP returns every
    message that the kernel received, a GSO message as one, and each of these errors is a
    packet that the device also counts.

    Parameters
    ----------
    counted_packets, counted_bytes : int
        The growth of the device's counters, such as ``counters.packets`` and ``.bytes``.
    packets : int
        SPEAD packets sent.
    messages : int
        Messages given to the kernel; fewer than packets where GSO merged some.
    spead_bytes : int
        Bytes of those packets, the headers of UDP, IP and the link not included.
    ip_header : int
        20 for IPv4. 40 for IPv6, whose fragments (they carry a further header) are not
        accounted for: a fragmented datagram is a disagreement.
    link_header : int
        14 for Ethernet; `Counters.link_header` knows what it is.
    icmp_errors : int
        Messages that came back: none or all.
    icmp_bytes : int
        Bytes of these errors, as `icmp_error_bytes` has it for each, headers included.
    """
    header = link_header + ip_header
    sent_packets = counted_packets - icmp_errors
    datagrams = packets if sent_packets == packets else messages
    fragmented = messages == packets and sent_packets > packets
    expected_packets = sent_packets if fragmented else datagrams
    expected_bytes = spead_bytes + _UDP_HEADER * datagrams + header * expected_packets + icmp_bytes
    expected_packets += icmp_errors
    claim = f"{packets} SPEAD packets of {spead_bytes} bytes in {messages} messages"
    if icmp_errors:
        claim += f" and as many ICMP errors of {icmp_bytes} bytes"
    seen = f"the device counted {counted_packets} packets and {counted_bytes} bytes"
    where = f"in the device{', as IP fragments' if fragmented else ''}"
    back = icmp_errors or datagrams  # where none came back, none had to
    complaint = first_complaint((
        Gap("among those that ICMP returned, all or none", datagrams, back, unit="message"),
        Gap(where, expected_packets, counted_packets),
        Gap(where, expected_bytes, counted_bytes, unit="byte"),
    ))  # fmt: skip
    ok = complaint is None
    text = f"{seen}, exactly what {claim} make" if ok else f"{seen} of {claim}; {complaint}"
    return Accounting(ok, text, expected_packets, expected_bytes, counted_packets, counted_bytes)


def icmp_error_bytes(message_bytes: int) -> int:
    """Return how many bytes the ICMP error has that returns a UDP message over IPv4.

    Its headers of IP (20) and ICMP (8) are included. It quotes the message from its IP header on,
    as far as 576 bytes have room for: so it is for a message of 520 bytes and for all longer ones.

    Parameters
    ----------
    message_bytes : int
        Bytes of the message, the headers of UDP and IP not included.
    """
    return min(_ICMP_MOST, 20 + 8 + 20 + _UDP_HEADER + message_bytes)


def protocols(tables: str) -> dict[str, dict[str, int]]:
    """Take a machine's counters, by protocol and name, from its tables ``snmp`` and ``netstat``."""
    counted = {}
    lines = [line.split() for line in tables.splitlines()]
    for names, values in zip(lines[::2], lines[1::2], strict=True):
        counted[names[0].rstrip(":")] = dict(zip(names[1:], map(int, values[1:]), strict=True))
    return counted


# ---- The way to a receiver ----


@dataclasses.dataclass(frozen=True, slots=True)
class Arrivals:
    """What a machine's IP layer (IPv4) counted of what arrived; two of them subtract."""

    packets: int  #: Datagrams that arrived whole, each packet of a merged message by itself.
    unclaimed: int = 0  #: Messages for a port without a receiver.
    torn: int = 0  #: Datagrams of which fragments were missing.
    no_room: int = 0  #: Messages that a socket had no room for.

    @classmethod
    def of(cls, counted: Mapping[str, Mapping[str, int]]) -> "Arrivals":
        """Take them from a machine's protocol counters.

        Parameters
        ----------
        counted : mapping
            What `LabMachine.snmp` returned.
        """
        ip, octets, udp = counted["Ip"], counted["IpExt"], counted["Udp"]
        # By the bits for congestion, of which each packet has some: what else counts packets
        # here counts merged ones as one.
        kinds = ("InNoECTPkts", "InECT1Pkts", "InECT0Pkts", "InCEPkts")
        whole = sum(octets[kind] for kind in kinds) - ip["ReasmReqds"] + ip["ReasmOKs"]
        packets = whole - counted["Icmp"]["InMsgs"]
        return cls(packets, udp["NoPorts"], ip["ReasmFails"], udp["RcvbufErrors"])

    def __sub__(self, before: "Arrivals") -> "Arrivals":
        both = zip(dataclasses.astuple(self), dataclasses.astuple(before), strict=True)
        return Arrivals(*(now - then for now, then in both))


@dataclasses.dataclass(frozen=True, slots=True)
class Journey:
    """What was counted of a sender's packets along their way to a receiver."""

    sent: int  #: Packets that the sender sent, held against its device by `accounted`.
    received: int  #: Packets that the receiver read from its socket.
    #: Messages that the socket had no room for: packets, or with `merging` runs of them.
    dropped: int = 0
    lost: int = 0  #: Packets that were lost by what disturbed the way on purpose.
    duplicated: int = 0  #: Packets that were made by it.
    lost_messages: int = 0  #: Messages that devices on the way dropped, of one packet or several.
    arrivals: Arrivals | None = None  #: What the receiver's machine counted.
    #: Whether the socket may have had runs of packets in one message: it has ``UDP_GRO``.
    merging: bool = True
    sent_bytes: int | None = None  #: Bytes of packets sent, without the headers of UDP and IP.
    received_bytes: int | None = None  #: Bytes of packets received, in the same way.

    @classmethod
    def of(
        cls,
        sent: int,
        seen: Mapping[str, int],
        *,
        arrivals: Arrivals | None = None,
        way: Disturbed | None = None,
        device: Counters | None = None,
        sent_bytes: int | None = None,
    ) -> Self:
        """Put together what has been counted.

        Parameters
        ----------
        sent : int
            Packets that the sender sent.
        seen : mapping
            What the receiver counted: the ``stats`` of a stream, a sink's summary, or the JSON
            object of a chapter's program.
        arrivals : Arrivals, optional
            Growth of what the receiver's machine counted.
        way : Disturbed, optional
            What the way did on purpose.
        device : Counters, optional
            Growth of the counters of the sender's device.
        sent_bytes : int, optional
            Bytes of the packets, without the headers of UDP and IP.
        """
        is_stream = "socket_datagrams" in seen
        names = ("socket_datagrams", "socket_bytes", "socket_dropped")
        packets, n_bytes, dropped = names if is_stream else ("packets", "bytes", "dropped")
        return cls(
            sent,
            seen[packets],
            seen[dropped],
            lost=way.lost + way.overflown if way else 0,
            duplicated=way.duplicated if way else 0,
            lost_messages=device.tx_dropped if device else 0,
            arrivals=arrivals,
            merging=is_stream,
            sent_bytes=sent_bytes,
            received_bytes=seen.get(n_bytes),
        )

    @property
    def lost_on_the_way(self) -> int:
        """Packets that were lost before the receiver's machine, on purpose or not."""
        if self.arrivals is None:
            return self.lost
        return self.sent + self.duplicated - self.arrivals.packets

    @property
    def dropped_packets(self) -> int:
        """Packets that reached the receiver's machine, but not the receiver."""
        return self.sent + self.duplicated - self.lost_on_the_way - self.received

    def check(self) -> Accounting:
        """Say whether all that was sent is accounted for.

        Expected is what was sent, and made on the way; counted is what was received and what is
        known to be lost. Where these differ, the text says where.
        """
        expected = self.sent + self.duplicated
        complaint = first_complaint(self._gaps())
        doubled = f", {self.duplicated} doubled on the way" if self.duplicated else ""
        text = f"{self.sent} packets sent{doubled}: {self.received} received"
        if complaint is None:
            lost, dropped, counted = self.lost_on_the_way, self.dropped_packets, expected
            runs = f" (in {self.dropped} messages)" if dropped != self.dropped else ""
            text += f", {lost} lost on the way, {dropped} without room in the socket{runs}"
        else:
            lost, dropped = self.lost + self.lost_messages, self.dropped
            counted = self.received + lost + dropped
            text += f", {lost} counted as lost on the way and {dropped} without room in the socket"
            text += f"; {complaint}"
        sent_bytes, received_bytes = self.sent_bytes or 0, self.received_bytes or 0
        return Accounting(complaint is None, text, expected, sent_bytes, counted, received_bytes)

    def _gaps(self) -> Iterator[Gap]:
        passed = self.sent + self.duplicated - self.lost
        # Devices are given runs of packets, by offload; a socket has them if it asks for them.
        of_devices = self.lost_messages, self.lost_messages * _MOST_MERGED
        of_socket = self.dropped, self.dropped * (_MOST_MERGED if self.merging else 1)
        more = "something else sends there"
        if self.arrivals is None:
            where = "between the sender and the receiver's socket"
            least, most = map(sum, zip(of_devices, of_socket, strict=True))
            yield Gap(where, passed, self.received, least, most, surplus=more)
        else:
            arrived, torn = self.arrivals.packets, self.arrivals.torn
            where = "between the sender and the receiver's machine"
            where += f", {torn} torn into fragments" if torn else ""
            yield Gap(where, passed, arrived, *of_devices, surplus=more)
            where = _at_the_socket(self.arrivals.unclaimed)
            yield Gap(where, arrived, self.received, *of_socket, surplus=more)
        whole = self.received == self.sent and not self.duplicated
        if whole and self.sent_bytes is not None and self.received_bytes is not None:
            where = "though no packet is"
            yield Gap(where, self.sent_bytes, self.received_bytes, unit="byte")


def _at_the_socket(unclaimed: int) -> str:
    if unclaimed:
        return (
            f"at a port without a socket, to which {unclaimed} messages came: start the receiver"
            " before the sender, and end it after"
        )
    return "in the receiver's machine, perhaps in the socket when it was closed"
