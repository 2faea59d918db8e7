# SPDX-License-Identifier: BSD-3-Clause
"""The chapters' loops with spead2, each a program by itself."""
