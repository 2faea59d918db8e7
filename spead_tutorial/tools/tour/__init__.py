# SPDX-License-Identifier: BSD-3-Clause
"""The tour: every chapter in Python and in C, what each of them gained, and the proof."""
