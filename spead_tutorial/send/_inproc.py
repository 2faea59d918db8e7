# SPDX-License-Identifier: BSD-3-Clause
"""How to make a stream that sends to queues in the process."""

from collections.abc import Callable, Sequence

from spead_tutorial._core import InprocQueue, ThreadPool
from spead_tutorial._types import StreamConfig


class InprocArguments:
    """InprocStream(thread_pool, queues, config=None)

    A stream that sends to queues in the process. While a queue is full, it waits.

    Parameters
    ----------
    thread_pool : ThreadPool or None
        Whose threads send; kept alive. None: the thread that calls does it.
    queues : sequence of InprocQueue
        One for each substream, at least one.
    config : StreamConfig, optional
        How it sends; copied. By default ``StreamConfig()``.

    Raises
    ------
    ValueError
        Without queues.
    TypeError
        For what is not an InprocQueue.
    """

    _open_inproc_stream: Callable[..., None]  # of the stream that this is a base of

    def __init__(
        self,
        thread_pool: ThreadPool | None,
        queues: Sequence[InprocQueue],
        config: StreamConfig | None = None,
    ) -> None:
        if isinstance(queues, InprocQueue):
            raise TypeError("queues are a sequence, such as [queue], and not a queue")
        self._queues = list(queues)
        self._open_inproc_stream(thread_pool, self._queues, config)

    @property
    def queues(self) -> Sequence[InprocQueue]:
        """The queue of each substream."""
        return list(self._queues)
