# SPDX-License-Identifier: BSD-3-Clause
"""What a person types: a file or a folder for each large command."""
