# SPDX-License-Identifier: BSD-3-Clause
"""Checking a program that a reader wrote for an exercise: are its bytes right, how fast is it."""
