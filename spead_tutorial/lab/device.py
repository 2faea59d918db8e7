# SPDX-License-Identifier: BSD-3-Clause
"""What a lab's device is called, what makes one by hand, and why there may be none."""

import errno
import os
from pathlib import Path

#: Name of the device in a lab.
DEVICE = "dummy1"
#: The address to send to: on the device's network, and no machine's.
ADDRESS = "192.168.31.2"
#: The same for IPv6.
ADDRESS6 = "fd00:31::2"
#: The UDP port to send to.
PORT = 8888
#: The kinds of device a lab can have, in the order in which it tries them.
KINDS = ("dummy", "ifb", "veth")
#: The ways from the sender to the receiver that a lab with a receiver can have.
WAYS = ("veth", "loopback")
#: Name of the receiver's device, at the other end of a veth.
FAR_DEVICE = "far0"
#: Its link address, and what leads to `ADDRESS` where no machine receives.
FAR_MAC = "02:00:00:00:1f:02"
#: Name of the receiver's device into which a relay sends.
RELAY = "relay0"
#: What the sender's device is called besides, where it leads to a receiver or to a switch.
ALIAS = "to a receiver of spead_tutorial's"


def root_commands() -> tuple[str, ...]:
    """Return the commands of iproute2 that a person with root types to get the same device."""
    return (
        "ip link add dummy1 type dummy",
        "ip link set dummy1 addrgenmode none",
        "ip link set dummy1 mtu 9216 up",
        "ip addr add 192.168.31.1/24 dev dummy1",
    )


def check_kind(kind: str | None, kinds: tuple[str, ...] = KINDS) -> None:
    if kind is not None and kind not in kinds:
        raise ValueError(f"kind is {kind!r}: it must be one of {', '.join(kinds)}")


def _text(path: Path) -> str:
    """Return the text of a file; none where it cannot be read."""
    try:
        return path.read_text()
    except OSError:
        return ""


class LabError(RuntimeError):
    """A lab could not do what was asked; the text says what, and what to do about it.

    Where several things can be done, each is a line of its own, after the one that says what.
    """

    @property
    def summary(self) -> str:
        """What could not be done, in one line."""
        return str(self).partition("\n")[0]


def instead(error: LabError, *ways: str) -> LabError:
    """Return an error with what can be done without a lab, which comes first."""
    what, *others = str(error).split("\n")
    return LabError("\n".join([what, *ways, *others]))


class RefusedError(LabError):
    """The kernel refused a namespace, a device or something of a device; the helper reports it."""

    def __init__(self, what: str, number: int, kind: str | None = None) -> None:
        super().__init__(what, number, kind)
        # "namespace", "device", "kind", "way", "limit", "features", "loss" or "switch"
        self.what = what
        self.number = number
        self.kind = kind  # of the device, where it was forced

    def __str__(self) -> str:
        why = os.strerror(self.number)
        if self.what == "limit":
            return (
                f"this kernel limits no link's rate ({why}): load tbf (as root: modprobe sch_tbf)"
            )
        if self.what == "features":
            return (
                f"this kernel does not let a device of this kind cut less or compute less ({why})"
            )
        if self.what == "loss":
            return f"nothing here loses packets on request ({why}): apt install nftables"
        if self.what == "switch":
            return f"this kernel offers no bridge ({why}): load it (as root: modprobe bridge)"
        if self.what == "way":
            return (
                f"this kernel offers no veth, the way to a receiver ({why}): load it (as root:"
                " modprobe veth), or take the kind loopback"
            )
        if self.what == "kind" and (kind := self.kind):
            return f"this kernel offers no device of kind {kind!r}: leave the choice to the lab"
        if self.what == "kind":
            return (
                f"this kernel offers none of the devices {', '.join(KINDS)}: load one"
                " (as root: modprobe dummy)"
            )
        what = "a network namespace" if self.what == "namespace" else "a device in its namespace"
        cause, ways = _cause_and_ways(self.number)
        return "\n".join([f"the system forbids this user {what} ({cause})", *ways, BY_HAND])


#: What root can always do; `doctor` is what prints it.
BY_HAND = "as root, make its device by hand: spead-tutorial doctor prints how"


def _cause_and_ways(number: int) -> tuple[str, tuple[str, ...]]:
    """Return why there can be no namespace, and what allows it, a line each."""
    for name, forbidding, allowing in (
        ("kernel/unprivileged_userns_clone", "0", 1),
        ("kernel/apparmor_restrict_unprivileged_userns", "1", 0),
        ("user/max_user_namespaces", "0", 10000),
        ("user/max_net_namespaces", "0", 10000),
    ):
        if _text(Path("/proc/sys", name)).strip() == forbidding:
            switch = name.replace("/", ".")
            ways = (f"as root, allow it until the next boot: sysctl -w {switch}={allowing}",)
            return f"{switch} is {forbidding}", ways
    # What the kernel calls so has nothing to do with disks.
    is_limit = number in (errno.ENOSPC, errno.EUSERS)
    return "a limit on namespaces is reached" if is_limit else os.strerror(number), (
        "in a container, start it with: --cap-add SYS_ADMIN --cap-add NET_ADMIN",
        "or with a seccomp profile that allows unshare: --security-opt seccomp=unconfined",
        "in a chroot, enter its folder by pivot_root, as bwrap and containers do",
        "or be root",
    )
