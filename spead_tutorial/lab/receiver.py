# SPDX-License-Identifier: BSD-3-Clause
"""The second machine of a lab, which receives what is sent there."""

import socket

from .client import Client
from .device import ADDRESS, PORT
from .journey import Arrivals
from .machine import LabMachine

__all__ = ["LabReceiver"]


class LabReceiver(LabMachine):
    """The machine that receives; `Lab.receiver` is one.

    Attributes
    ----------
    address, port : str, int
        Where it receives: to which programs in the lab send by default.
    """

    def __init__(self, helper: Client, kind: str, device: str) -> None:
        super().__init__(helper, kind, device)
        self.address = ADDRESS
        self.port = PORT

    def __repr__(self) -> str:
        return f"<LabReceiver {self.kind} {self.address} port {self.port}>"

    def socket(
        self, port: int = PORT, *, host: str = ADDRESS, buffer_size: int | None = None
    ) -> socket.socket:
        """Make a UDP socket that receives here, for use by this process.

        Parameters
        ----------
        port : int
            The port that it is bound to; 0 for one that the system chooses.
        host : str
            The address that it is bound to; that of a group it has yet to join.
        buffer_size : int, optional
            Bytes of its receive buffer. The system has a limit, see ``spead-tutorial doctor``.

        Returns
        -------
        socket.socket
            The caller's, to be closed.
        """
        made = self._helper.socket(socket.AF_INET, socket.SOCK_DGRAM)
        try:
            if buffer_size is not None:
                made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer_size)
            made.bind((host, port))
        except BaseException:
            made.close()
            raise
        return made

    def arrivals(self) -> Arrivals:
        """Read what has arrived at this machine, packet by packet.

        Returns
        -------
        Arrivals
            As of now; subtract two of them to see what arrived in between.
        """
        return Arrivals.of(self.snmp())
