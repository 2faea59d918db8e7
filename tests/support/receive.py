# SPDX-License-Identifier: BSD-3-Clause
"""For each line read, receive with spead2 until the stop heap, and say in JSON what came."""

import json
import sys
import zlib

import spead2
import spead2.recv


def receive(port: int) -> None:
    stream = spead2.recv.Stream(
        spead2.ThreadPool(),
        spead2.recv.StreamConfig(max_heaps=16, allow_out_of_order=True),
        spead2.recv.RingStreamConfig(heaps=64),
    )
    stream.add_udp_reader(port, bind_hostname="127.0.0.1", max_size=65536, buffer_size=1 << 24)
    print("ready", flush=True)
    items = spead2.ItemGroup()
    heaps = []
    for heap in stream:
        updated = items.update(heap)
        samples = updated["adc_samples"].value if "adc_samples" in updated else None
        heaps.append(
            {
                "cnt": heap.cnt,
                "timestamp": int(updated["timestamp"].value) if "timestamp" in updated else None,
                "shape": list(samples.shape) if samples is not None else None,
                "dtype": str(samples.dtype) if samples is not None else None,
                "lowest": int(samples.min()) if samples is not None else None,
                "highest": int(samples.max()) if samples is not None else None,
                "crc": zlib.crc32(samples.tobytes()) if samples is not None else None,
            }
        )
    stream.stop()
    names = {item.name: item.description for item in items.values()}
    print(json.dumps({"heaps": heaps, "items": names}), flush=True)


def main() -> None:
    """Receive on the port that is named, once for each line of standard input."""
    for _ in sys.stdin:
        receive(int(sys.argv[1]))


if __name__ == "__main__":
    main()
