# SPDX-License-Identifier: BSD-3-Clause
"""``spead-tutorial array``: every sender of an array to every receiver, on an engine of Dask's."""
