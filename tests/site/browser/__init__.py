# SPDX-License-Identifier: BSD-3-Clause
"""The site in a browser, which ends with the last of these tests."""
