# SPDX-License-Identifier: BSD-3-Clause
"""What records say of single runs: when heaps were sent, how evenly, what their time went into."""
