# SPDX-License-Identifier: BSD-3-Clause
"""How numbers are written, in pictures, in tables, and on the site."""

_LEAST = 0.01


def thousands(x: float) -> str:
    """Write a whole number in groups of three digits."""
    return f"{x:,.0f}".replace(",", "\N{THIN SPACE}")


def number(x: float) -> str:
    """Write a number with two or three digits; what there is, however little, is never nothing."""
    if 0 < x < _LEAST:
        return f"< {_LEAST:g}"
    if x == 0 or x >= 100:
        return thousands(x)
    return f"{x:.3g}" if x >= 1 else f"{x:.2g}"


def percent(share: float) -> str:
    """Write a share of one; what is there is never called nothing."""
    return f"{share:.0%}".replace("%", " %") if share == 0 or share >= 0.005 else "< 1 %"


def size(n: float) -> str:
    """Write a number of bytes in the largest unit that there is one of."""
    for unit, shift in (("GiB", 30), ("MiB", 20), ("KiB", 10)):
        if n >= 1 << shift:
            return f"{n / (1 << shift):.4g} {unit}"
    return f"{n:g} bytes"


def bytes_text(n: float) -> str:
    """Write a size in bytes."""
    return f"{thousands(n) if n >= 10000 else f'{n:g}'} bytes"


def times(x: float) -> str:
    """Write a factor: with two digits after the point, or of a large one three in all."""
    return f"\N{MULTIPLICATION SIGN}{x:.2f}" if x < 9.995 else f"\N{MULTIPLICATION SIGN}{x:.3g}"
