# SPDX-License-Identifier: BSD-3-Clause
"""What a device counted, and what it should have counted."""

import dataclasses

from spead_tutorial.ledger import Gap, first_complaint

__all__ = ["Accounting", "Counters", "accounted", "icmp_error_bytes"]


_ETHERNET_HEADER, _UDP_HEADER = 14, 8
_ICMP_MOST = 576  # what every host can receive: Linux quotes no more of a message than fits


@dataclasses.dataclass(frozen=True, slots=True)
class Counters:
    """A device's own counters; two of them subtract.

    Parameters
    ----------
    kind : str
        Kind of the device, which says where it counts what it swallowed: ``"dummy"``,
        ``"ifb"``, ``"veth"`` or ``"loopback"``.
    rx_packets, rx_bytes, rx_dropped, tx_packets, tx_bytes, tx_dropped : int
        As in ``/proc/net/dev``. Bytes include `link_header` for each packet.
    """

    kind: str
    rx_packets: int
    rx_bytes: int
    rx_dropped: int
    tx_packets: int
    tx_bytes: int
    tx_dropped: int

    @classmethod
    def parse(cls, table: str, device: str, kind: str) -> "Counters | None":
        """Take a device's counters from the text of ``/proc/net/dev``.

        Parameters
        ----------
        table : str
            The text.
        device, kind : str
            Name and kind of the device.

        Returns
        -------
        Counters or None
            None where the table does not have the device.
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
    """What a device counted beside what it should have counted.

    Parameters
    ----------
    ok : bool
        Whether the two agree exactly.
    text : str
        One line that says so, with the numbers.
    expected_packets, expected_bytes : int
        What was expected of the device.
    counted_packets, counted_bytes : int
        What it counted.
    """

    ok: bool
    text: str
    expected_packets: int
    expected_bytes: int
    counted_packets: int
    counted_bytes: int


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

    On loopback, which also carries the answers, nobody may listen: then ICMP returns every
    message that the kernel received, a GSO message as one, and each of these errors is a
    packet that the device counts too.

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

    Returns
    -------
    Accounting
        Exact equality, or a text that says what was expected and what was seen.
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
    """Return how long the ICMP error is that returns a UDP message over IPv4.

    It quotes the message from its IP header on, as far as 576 bytes have room for: so it is
    for a message of 520 bytes and for all longer ones.

    Parameters
    ----------
    message_bytes : int
        Bytes of the message, the headers of UDP and IP not included.

    Returns
    -------
    int
        Bytes of the error, its headers of IP (20) and ICMP (8) included.
    """
    return min(_ICMP_MOST, 20 + 8 + 20 + _UDP_HEADER + message_bytes)
