# SPDX-License-Identifier: BSD-3-Clause
"""Where every packet went, from a sender to its receiver; nothing has a rate before that is known.

Devices and sockets count messages, of which one may hold a run of packets (segmentation and receive
offload). The receiver's IP layer counts packets, so that those decide.
"""

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Self

from spead_tutorial.ledger import Gap, first_complaint

from .counters import Accounting, Counters
from .disturbance import Disturbed

__all__ = ["Arrivals", "Journey"]

#: Packets that the kernel puts into one message at most.
_MOST_MERGED = 128


@dataclasses.dataclass(frozen=True, slots=True)
class Arrivals:
    """What a machine's IP layer (IPv4) counted of what arrived; two of them subtract.

    Parameters
    ----------
    packets : int
        Datagrams that arrived whole, each packet of a merged message by itself.
    unclaimed : int
        Messages for a port at which nobody received.
    torn : int
        Datagrams of which fragments were missing.
    no_room : int
        Messages that a socket had no room for.
    """

    packets: int
    unclaimed: int = 0
    torn: int = 0
    no_room: int = 0

    @classmethod
    def of(cls, counted: Mapping[str, Mapping[str, int]]) -> "Arrivals":
        """Take them from a machine's protocol counters.

        Parameters
        ----------
        counted : mapping
            As `LabMachine.snmp` returns it.
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
    """What was counted of a sender's packets along their way to a receiver.

    Parameters
    ----------
    sent : int
        Packets that the sender sent, held against its device by `accounted`.
    received : int
        Packets that the receiver read from its socket.
    dropped : int
        Messages that the socket had no room for: packets, or with `merging` runs of them.
    lost, duplicated : int
        Packets that were lost, or made, by what disturbed the way on purpose.
    lost_messages : int
        Messages that devices on the way dropped, of one packet or several.
    arrivals : Arrivals, optional
        What the receiver's machine counted.
    merging : bool
        Whether the socket may have had runs of packets in one message: it has ``UDP_GRO``.
    sent_bytes, received_bytes : int, optional
        Bytes of the packets, without the headers of UDP and IP.
    """

    sent: int
    received: int
    dropped: int = 0
    lost: int = 0
    duplicated: int = 0
    lost_messages: int = 0
    arrivals: Arrivals | None = None
    merging: bool = True
    sent_bytes: int | None = None
    received_bytes: int | None = None

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

        Returns
        -------
        Accounting
            Expected is what was sent, and made on the way; counted is what was received and
            what is known to be lost. Where these differ, the text says where.
        """
        expected = self.sent + self.duplicated
        complaint = first_complaint(self._gaps())
        doubled = f", {self.duplicated} doubled on the way" if self.duplicated else ""
        text = f"{self.sent} packets sent{doubled}: {self.received} received"
        if complaint is None:
            counted, runs = expected, ""
            if self.dropped != self.dropped_packets:
                runs = f" (in {self.dropped} messages)"
            text += (
                f", {self.lost_on_the_way} lost on the way, {self.dropped_packets} without room in"
                f" the socket{runs}"
            )
        else:
            lost = self.lost + self.lost_messages
            counted = self.received + lost + self.dropped
            text += (
                f", {lost} counted as lost on the way and {self.dropped} without room in the"
                f" socket; {complaint}"
            )
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
            torn = f", {self.arrivals.torn} torn into fragments" if self.arrivals.torn else ""
            where = f"between the sender and the receiver's machine{torn}"
            yield Gap(where, passed, self.arrivals.packets, *of_devices, surplus=more)
            arrived = self.arrivals.packets
            yield Gap(self._at_the_socket(), arrived, self.received, *of_socket, surplus=more)
        whole = self.received == self.sent and not self.duplicated
        if whole and self.sent_bytes is not None and self.received_bytes is not None:
            where = "though no packet is"
            yield Gap(where, self.sent_bytes, self.received_bytes, unit="byte")

    def _at_the_socket(self) -> str:
        assert self.arrivals is not None
        if self.arrivals.unclaimed:
            return (
                f"at a port without a socket, to which {self.arrivals.unclaimed} messages came:"
                " start the receiver before the sender, and end it after"
            )
        return "in the receiver's machine, perhaps in the socket when it was closed"
