# SPDX-License-Identifier: BSD-3-Clause
"""Sending heaps from coroutines: calls that return futures.

What these streams send, and how they are configured, is in `spead_tutorial.send`.
"""

from spead_tutorial._core import AsyncStream
from spead_tutorial.send._ibverbs import IbvArguments as _IbvArguments
from spead_tutorial.send._inproc import InprocArguments as _InprocArguments
from spead_tutorial.send._tcp import TcpSocket as _TcpSocket
from spead_tutorial.send._udp import UdpArguments as _UdpArguments

__all__ = ["AsyncStream", "InprocStream", "TcpStream", "UdpIbvStream", "UdpStream"]


class InprocStream(_InprocArguments, AsyncStream):
    __doc__ = _InprocArguments.__doc__


class TcpStream(_TcpSocket, AsyncStream):
    __doc__ = _TcpSocket.__doc__


class UdpStream(_UdpArguments, AsyncStream):
    __doc__ = _UdpArguments.__doc__


class UdpIbvStream(_IbvArguments, AsyncStream):
    __doc__ = _IbvArguments.__doc__
