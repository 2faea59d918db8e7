# SPDX-License-Identifier: BSD-3-Clause
"""Other machines: which there are, and what is asked of them."""
