# SPDX-License-Identifier: BSD-3-Clause
"""Labs, where there can be some; and processes that have begun to take signals."""

import functools

import pytest

from spead_tutorial import lab

#: What this machine offers for a lab, which a process asks for once.
probe = functools.cache(lab.probe)
REASON = f"no lab here: {probe().reason}"
needs_lab = pytest.mark.skipif(probe().reason is not None, reason=REASON)

#: What begins a command that the system lets neither make a network nor enter one: by a limit, as
#: `user.max_user_namespaces` is, of which its user sees that it is 0. Its loopback is its own: what
#: other tests send at the same time does not arrive there.
_FORBID = 'ip link set lo up && echo 0 > /proc/sys/user/max_net_namespaces && exec "$@"'
CONFINED = ("unshare", "--user", "--net", "--map-root-user", "sh", "-c", _FORBID, "sh")
#: What begins one to whose user the kernel gives no namespaces at all, as many containers do.
WITHOUT_NAMESPACES = (
    *CONFINED[:-2],
    _FORBID.replace("net", "user").replace("exec", "exec setpriv --bounding-set=-all"),
    "sh",
)


def open_lab() -> lab.Lab:
    """Open a lab, or skip the test where there can be none."""
    if probe().reason is not None:
        pytest.skip(REASON)
    return lab.Lab()
