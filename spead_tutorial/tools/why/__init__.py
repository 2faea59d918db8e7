# SPDX-License-Identifier: BSD-3-Clause
"""A diagnosis for anybody's sender: what was seen of it, and what that means."""
