# SPDX-License-Identifier: BSD-3-Clause
"""Say how long a socket's buffer lasts when nobody reads: its size over the rate."""

RATES = (0.5, 1, 2, 4)  # GB/s
BUFFERS = {  # bytes that are asked for
    "208 KiB": 208 << 10,
    "4 MiB": 4 << 20,
    "8 MiB": 8 << 20,
    "64 MiB": 64 << 20,
}

print("buffer".ljust(8), *(f"{f'at {rate} GB/s':>14}" for rate in RATES), sep="  ")
for name, size in BUFFERS.items():
    times = (f"{size / rate / 1e6:.2f} ms" for rate in RATES)
    print(name.ljust(8), *(f"{time:>14}" for time in times), sep="  ")
