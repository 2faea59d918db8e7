# SPDX-License-Identifier: BSD-3-Clause
"""What arrives at a port, for who looks on."""
