# SPDX-License-Identifier: BSD-3-Clause
"""An instrument and its test: heaps go from one to the other without a network."""

import numpy as np

import spead_tutorial
from spead_tutorial import recv, send

N_SAMPLES = 4096


def run_instrument(stream: send.SyncStream, n_heaps: int) -> None:
    """Send the samples of an instrument, over whatever the stream sends over."""
    group = send.ItemGroup()
    group.add_item(0x1600, "timestamp", "Index of the first sample", (), format=[("u", 40)])
    group.add_item(0x3300, "adc_samples", "Samples of the converter", (N_SAMPLES,), np.int8)
    for i in range(n_heaps):
        group["timestamp"].value = i * N_SAMPLES
        group["adc_samples"].value = np.full(N_SAMPLES, i, np.int8)
        stream.send_heap(group.get_heap())
    stream.send_heap(group.get_end())


def test_no_sample_is_missing() -> None:
    """Receive all that the instrument sends, as it would be received elsewhere."""
    queue = spead_tutorial.InprocQueue()
    pool = spead_tutorial.ThreadPool()
    run_instrument(send.InprocStream(pool, [queue]), n_heaps=10)

    stream = recv.Stream(pool)
    stream.add_inproc_reader(queue)
    group = spead_tutorial.ItemGroup()
    for i, heap in enumerate(stream):
        group.update(heap)
        assert group["timestamp"].value == i * N_SAMPLES
        assert (group["adc_samples"].value == i).all()
    stats = stream.stats
    print(stats.heaps_complete, "heaps and", stats.packets_received, "packets came,", end=" ")
    print(stats.packets_received - stats.packets_placed, "of them for nothing")
    assert stats.heaps_complete == 10


if __name__ == "__main__":
    test_no_sample_is_missing()
