# SPDX-License-Identifier: BSD-3-Clause
"""Says that there is no receiver yet, to whoever looks for one under the name it has elsewhere."""

raise ImportError(
    "spead_tutorial has no receiver yet: receive with spead2.recv, or look at what was sent, with"
    " spead_tutorial.wire or the sink (spead_tutorial.lab.sink_path)"
)
