# SPDX-License-Identifier: BSD-3-Clause
"""Numbers, tables and pictures of what was measured."""
