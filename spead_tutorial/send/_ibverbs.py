# SPDX-License-Identifier: BSD-3-Clause
"""Names that spead2 has for sending with ibverbs, which there is not here: who does is told so."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from spead_tutorial._core import ThreadPool
from spead_tutorial._types import StreamConfig


@dataclass(kw_only=True, eq=False)
class UdpIbvConfig:
    """How spead2's `UdpIbvStream` sends.

    Parameters
    ----------
    endpoints, interface_address, buffer_size, ttl, comp_vector, max_poll, memory_regions
        As spead2's; not looked at.
    """

    DEFAULT_BUFFER_SIZE: ClassVar[int] = 524288
    DEFAULT_MAX_POLL: ClassVar[int] = 10

    endpoints: Sequence[tuple[str, int]] = ()
    interface_address: str = ""
    buffer_size: int = DEFAULT_BUFFER_SIZE
    ttl: int = 1
    comp_vector: int = 0
    max_poll: int = DEFAULT_MAX_POLL
    memory_regions: Sequence[Any] = ()


class IbvArguments:
    """Raises NotImplementedError: `UdpStream` is what sends here.

    Parameters
    ----------
    thread_pool, config, udp_ibv_config
        As spead2's; not looked at.
    """

    def __init__(
        self, thread_pool: ThreadPool, config: StreamConfig, udp_ibv_config: UdpIbvConfig
    ) -> None:
        raise NotImplementedError(
            "there is no ibverbs here: UdpStream(thread_pool, endpoints, config, ttl=...,"
            " interface_address=...) sends through the kernel"
        )
