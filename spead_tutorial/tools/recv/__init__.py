# SPDX-License-Identifier: BSD-3-Clause
"""``spead-tutorial recv``: what arrives at a port, for who looks on."""

from .command import recv

__all__ = ["recv"]
