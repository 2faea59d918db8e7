#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What using memory again gained, out of a record: ``read_record.py bench/results/tut-8.jsonl``."""

import sys

from spead_tutorial.measure import records, stats

BEFORE, AFTER = "tut_8_send_heap_size", "tut_8_send_reuse_memory"


def main() -> None:
    recording = records.read(sys.argv[1])
    header = recording.header
    print(f"{header.experiment}: {len(recording.samples)} samples, {recording.rounds} rounds")
    print(f"lab: {header.lab['kind']}, MTU {header.lab['mtu']}")

    table = recording.frame()
    print(f"samples without a rate: {table.failure.notna().sum()}")
    plain = (table.language == "python") & (table.variant == "") & ~table.warm_up
    rates = table[plain].pivot(
        index=["heap_size_bytes", "round"],
        columns="program",
        values="rate_bytes_per_s",
    )

    print(f"{'heap':>9}  gain")
    for heap_size, of_size in rates.dropna().groupby(level="heap_size_bytes"):
        gain = stats.gain(of_size[BEFORE].to_dict(), of_size[AFTER].to_dict())
        size = f"{heap_size // 1024} KiB"
        print(f"{size:>9}  {gain.median:4.2f}  {gain.low:.2f} to {gain.high:.2f} ({gain.spread})")


if __name__ == "__main__":
    main()
