# SPDX-License-Identifier: BSD-3-Clause
"""Why there is no lab, and what to do about it."""

import os
from pathlib import Path

from .device import KINDS, read_text, root_commands

__all__ = ["LabError"]


class LabError(RuntimeError):
    """A lab could not do what was asked; the text says what, and what to do about it."""


class RefusedError(LabError):
    """The kernel refused a namespace, a device or something of a device; the helper reports it."""

    def __init__(self, what: str, number: int, kind: str | None = None) -> None:
        super().__init__(what, number, kind)
        self.what = what  # "namespace", "device", "kind", "way" or "limit"
        self.number = number
        self.kind = kind  # of the device, where it was forced

    def __str__(self) -> str:
        return _explain(self)


def _explain(refused: RefusedError) -> str:
    """Say in one line why there is no lab and what to do about it."""
    why = os.strerror(refused.number)
    if refused.what == "limit":
        return f"this kernel limits no link's rate ({why}): load tbf (as root: modprobe sch_tbf)"
    if refused.what == "way":
        return (
            f"this kernel offers no veth, the way to a receiver ({why}): load it (as root: modprobe"
            " veth), or take the kind loopback"
        )
    by_hand = "or, as root, type: " + " && ".join(root_commands())
    if refused.what == "kind":
        if kind := refused.kind:
            return f"this kernel offers no device of kind {kind!r}: leave the choice to the lab"
        return (
            f"this kernel offers none of the devices {', '.join(KINDS)}: load one"
            " (as root: modprobe dummy)"
        )
    what = "a network namespace" if refused.what == "namespace" else "a device in its namespace"
    for name, forbidding, allowing in (
        ("kernel/unprivileged_userns_clone", "0", 1),
        ("kernel/apparmor_restrict_unprivileged_userns", "1", 0),
        ("user/max_user_namespaces", "0", 10000),
        ("user/max_net_namespaces", "0", 10000),
    ):
        if read_text(Path("/proc/sys", name)).strip() == forbidding:
            return (
                f"the system forbids this user {what} ({why}): allow it (as root: sysctl"
                f" -w {name.replace('/', '.')}={allowing}), {by_hand}"
            )
    return (
        f"the system forbids this user {what} ({why}): in a container, start it with"
        " --cap-add SYS_ADMIN --cap-add NET_ADMIN or a seccomp profile that allows unshare; enter a"
        f" chroot's folder by pivot_root, as bwrap and containers do; or be root, {by_hand}"
    )
