# SPDX-License-Identifier: BSD-3-Clause
"""The lab: that it is made without root, counts exactly, and leaves nothing behind."""

import asyncio
import contextlib
import errno
import gc
import importlib.metadata
import importlib.resources
import json
import os
import re
import signal
import socket
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from spead_tutorial import lab as lab_module
from spead_tutorial.lab import Counters, Lab, LabError, accounted, device, root_commands, route
from spead_tutorial.lab.process import end_family, family
from support import ROOT
from support.lab_scripts import (
    PATIENCE_S,
    begun,
    run_script,
    script,
    send_gso,
    wait_for_the_end_of,
)
from support.labs import needs_lab, probe
from support.needs import need

PROBE = probe()
#: Packets at once.
MANY = 20_000

pytestmark = needs_lab


#: Every kind that this kernel offers; those after the first are looked at thoroughly.
KINDS = [
    pytest.param(kind, marks=[pytest.mark.thorough] * (kind != PROBE.kinds[0]))
    for kind in PROBE.kinds or ["none"]
]


@pytest.fixture(params=KINDS, scope="module")
def each_lab(request: pytest.FixtureRequest) -> Iterator[Lab]:
    """A lab of every kind, in which nothing was sent before its first test."""
    with Lab(request.param) as lab:
        assert lab.counters() == Counters(lab.kind, 0, 0, 0, 0, 0, 0)
        assert lab.counters("lo") == Counters("loopback", 0, 0, 0, 0, 0, 0)
        yield lab


def send(lab: Lab, *sizes: int, host: str = "", family: int = socket.AF_INET) -> Counters:
    """Send packets of these sizes, to the lab's address by default; return what was counted."""
    before = lab.counters()
    with lab.socket(family) as sock:
        for size in sizes:
            assert sock.sendto(bytes(size), (host or lab.address, lab.port)) == size
    return lab.counters() - before


def check(seen: Counters, packets: int, spead_bytes: int, messages: int = 0, **more: int) -> None:
    """Check that what was counted is what was sent, of which each packet is a message."""
    claim = {"packets": packets, "messages": messages or packets, "spead_bytes": spead_bytes}
    done = accounted(seen.packets, seen.bytes, **claim, **more)
    assert done.ok, done.text


# -- what it is --


def test_a_lab_is_made_of_the_first_kind_that_is_offered(lab):
    assert lab.kind == PROBE.kinds[0]
    assert (lab.address, lab.port, lab.device, lab.mtu) == ("192.168.31.2", 8888, "dummy1", 9216)


def test_a_lab_has_no_device_but_its_own_and_no_way_out(each_lab):
    done = each_lab.run(["cat", "/proc/self/net/dev"], capture_output=True, text=True, check=True)
    names = {line.partition(":")[0].strip() for line in done.stdout.splitlines()[2:]}
    own = {"lo", "dummy1"} | ({"far0"} if each_lab.kind == "veth" else set())
    # Some kernels put disconnected tunnel ends into every namespace.
    assert names - {"sit0", "tunl0", "gre0", "gretap0", "erspan0", "ip6tnl0", "ip6gre0"} == own
    with pytest.raises(OSError, match="unreachable"):
        send(each_lab, 1, host="198.51.100.1")


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Lab("tap"), "dummy, ifb, veth"),
        (lambda: Lab("loopback"), "dummy, ifb, veth"),
        (lambda: Lab("dummy", receiver=True), "veth, loopback"),
        (lambda: Lab(mtu=1279), "mtu is 1279: it must be in 1280"),
        (lambda: Lab(mtu=65536), "mtu is 65536: it must be in 1280"),
    ],
)
def test_a_device_that_no_lab_can_have_is_refused_with_those_that_it_can(make, words):
    with pytest.raises(ValueError, match=words):
        make()


@pytest.mark.skipif(len(PROBE.kinds) == 3, reason="this kernel offers every kind")
def test_a_kind_that_the_kernel_lacks_is_an_error_in_one_line():
    missing = next(kind for kind in lab_module.KINDS if kind not in PROBE.kinds)
    with pytest.raises(LabError, match=f"no device of kind '{missing}'") as caught:
        Lab(missing)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("receiver", [False, True])
def test_a_lab_has_the_mtu_that_was_asked_for_and_says_that_it_is_closed(receiver):
    with Lab(mtu=1500, receiver=receiver) as lab:
        assert (send(lab, 1472).packets, lab.mtu) == (1, 1500)
        with lab.socket() as sock:
            sock.setsockopt(socket.IPPROTO_IP, 10, 2)  # IP_MTU_DISCOVER, IP_PMTUDISC_DO
            with pytest.raises(OSError, match="too long"):
                sock.sendto(bytes(1473), (lab.address, lab.port))
    with pytest.raises(LabError, match="closed"):
        lab.counters()


def test_a_lab_serves_threads_and_event_loops_and_outlives_the_thread_that_opened_it():
    with ThreadPoolExecutor(1) as opener:
        lab = opener.submit(Lab).result()

    async def status(n: int) -> int:
        return lab.run(["sh", "-c", f"exit {n}"]).returncode

    with lab, ThreadPoolExecutor(8) as threads:
        found = threads.map(lambda n: asyncio.run(status(n)), range(8))
        assert list(found) == list(range(8))


# -- without root --


@pytest.mark.parametrize(
    ("refused", "words"),
    [
        (("limit", errno.ENOENT), "load tbf (as root: modprobe sch_tbf)"),
        (("way", errno.EOPNOTSUPP), "modprobe veth), or take the kind loopback"),
    ],
)
def test_what_the_kernel_refuses_is_said_in_one_line_with_a_way_out(refused, words):
    said = str(device.RefusedError(*refused))
    assert words in said
    assert "\n" not in said


SWITCHES = {
    "kernel/unprivileged_userns_clone": "0",
    "kernel/apparmor_restrict_unprivileged_userns": "1",
    "user/max_user_namespaces": "0",
    "user/max_net_namespaces": "0",
}


@pytest.mark.parametrize("name", SWITCHES)
@pytest.mark.parametrize("number", [errno.EPERM, errno.ENOSPC, errno.EUSERS])
def test_what_forbids_namespaces_is_the_cause_and_what_allows_them_a_line(
    monkeypatch, name, number
):
    files = {str(Path("/proc/sys", one)): "31\n" for one in SWITCHES}
    files[str(Path("/proc/sys", name))] = f"{SWITCHES[name]}\n"
    monkeypatch.setattr(device, "_text", lambda path: files.get(str(path), ""))
    what, *ways = str(device.RefusedError("namespace", number)).split("\n")
    setting = name.replace("/", ".")
    assert what.endswith(f"a network namespace ({setting} is {SWITCHES[name]})")
    assert ways[0].startswith(f"as root, allow it until the next boot: sysctl -w {setting}=")
    assert len(ways) == 2


@pytest.mark.parametrize(
    ("number", "cause"),
    [(errno.EPERM, "Operation not permitted"), (errno.ENOSPC, "a limit on namespaces is reached"),
     (errno.EUSERS, "a limit on namespaces is reached")],
)  # fmt: skip
def test_where_nothing_is_known_to_forbid_them_what_else_may_is_said_a_line_each(
    monkeypatch, number, cause
):
    monkeypatch.setattr(device, "_text", lambda path: "")
    error = device.RefusedError("namespace", number)
    assert error.summary == f"the system forbids this user a network namespace ({cause})"
    lines = str(error).split("\n")
    assert any("--cap-add SYS_ADMIN" in line for line in lines)
    assert len(lines) > 4
    assert max(map(len, lines)) < 90


# -- by hand --


def test_to_a_device_made_by_the_commands_for_root_a_sender_loses_nothing():
    kind = "dummy" if "dummy" in PROBE.kinds else "ifb"  # which takes the same
    commands = [one.replace("type dummy", f"type {kind}") for one in root_commands()]
    need("unshare", "ip")
    text = f"""
        lab_module.check_destination("192.168.31.2")
        sock = socket.socket(type=socket.SOCK_DGRAM)
        for _ in range({MANY}): sock.sendto(bytes(9000), ("192.168.31.2", 8888))
        print(open("/proc/self/net/dev").read())
    """
    shell = ["sh", "-ec", f'{" && ".join(commands)}; "$@"', "sh"]
    done = run_script(text, before=["unshare", "--user", "--map-root-user", "--net", *shell])
    assert (done.returncode, done.stderr) == (0, "")
    seen = Counters.parse(done.stdout, "dummy1", kind)
    assert seen is not None
    check(seen, MANY, MANY * 9000)


def test_the_guide_to_containers_has_the_commands_for_root():
    guide = (ROOT / "docs/how-to/containers.md").read_text()
    assert "\n".join(("```sh", *root_commands(), "```")) in guide


# -- sockets and counters --


def test_whatever_a_socket_of_the_lab_sends_the_device_counts_exactly(each_lab):
    check(send(each_lab, *[1472] * 1000), 1000, 1472000)
    fragments = send(each_lab, 20000)
    assert fragments.packets == 3
    check(fragments, 1, 20000)
    before = each_lab.counters()
    with each_lab.socket() as sock:
        send_gso(sock, 9000, bytes(7 * 9000), (each_lab.address, each_lab.port))
        send_gso(sock, 1472, bytes(4 * 1472 + 100), (each_lab.address, each_lab.port))
    merged = each_lab.counters() - before
    assert merged.packets == 2
    check(merged, 12, 7 * 9000 + 4 * 1472 + 100, messages=2)


def test_the_port_of_a_socket_is_free_once_it_is_closed(make_lab):
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(cores)})  # the helper's, too: it runs when this process waits
    try:
        with make_lab() as lab, contextlib.ExitStack() as stack:
            for other in [stack.enter_context(lab.socket()) for _ in range(100)]:
                with lab.socket() as sock:
                    sock.bind(("127.0.0.1", 0))
                    address = sock.getsockname()
                other.bind(address)
    finally:
        os.sched_setaffinity(0, cores)


def test_a_plain_card_cuts_nothing_and_gets_every_packet_by_itself(each_lab):
    promises = "tx-udp-segmentation", "tx-checksumming"
    for on in (True, False, True):
        with contextlib.nullcontext() if on else each_lab.plain_card():
            assert [each_lab.facts()["offloads"][one] for one in promises] == [on, on]
            before = each_lab.counters()
            with each_lab.socket() as sock:
                send_gso(sock, 9000, bytes(7 * 9000), (each_lab.address, each_lab.port))
            check(each_lab.counters() - before, 7, 7 * 9000, messages=1 if on else 7)


def test_a_device_that_comes_up_again_takes_all_that_it_took_before(each_lab):
    for _ in range(2):
        each_lab.set_link(False)
        with pytest.raises(OSError, match="unreachable"):
            send(each_lab, 1)
        before = each_lab.counters()
        each_lab.set_link(True)
        each_lab.set_link(True)  # is up: nothing happens
        assert each_lab.counters() == before
        for host in (each_lab.address, "239.1.2.3"):  # is swallowed, and counted, too
            check(send(each_lab, 1000, host=host), 1, 1000)
        for host in (each_lab.address6, "ff15::1") if each_lab.address6 is not None else ():
            check(send(each_lab, 1000, host=host, family=socket.AF_INET6), 1, 1000, ip_header=40)


def send_until_full(sock: socket.socket, to: tuple[str, int]) -> int:
    """Send messages of 1000 bytes until the socket has no room for more; return how many."""
    for sent in range(10_000):
        try:
            sock.sendto(bytes(1000), to)
        except BlockingIOError:
            return sent
    raise AssertionError("the link took everything: it has no limit")


def test_a_limited_link_passes_all_that_is_sent_and_holds_its_senders_up(each_lab):
    facts, before, to = each_lab.facts(), each_lab.counters(), (each_lab.address, each_lab.port)
    try:
        with pytest.raises(KeyError), each_lab.limited(10**9):
            raise KeyError
    except LabError as error:
        pytest.skip(str(error))
    assert each_lab.facts() == facts  # also after an error
    with each_lab.socket() as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 16)
        sock.setblocking(False)
        with each_lab.limited(10**6):
            assert each_lab.facts()["qdisc"] == "tbf"
            sent = send_until_full(sock, to)
            assert (each_lab.counters() - before).packets < sent  # some wait for the link
    check(each_lab.counters() - before, sent, 1000 * sent)
    assert each_lab.facts() == facts
    if facts["offloads"]["tx-udp-segmentation"]:  # otherwise the kernel cuts messages before
        before = each_lab.counters()
        with each_lab.limited(10**9), each_lab.socket() as sock:
            send_gso(sock, 1000, bytes(64000), to)
        assert (each_lab.counters() - before).packets == 1


def test_a_rate_that_no_link_can_have_is_refused(lab):
    for rate in (0, -1, 10**5, 10**11):
        words = f"bits_per_s is {rate}: it must be in"
        with pytest.raises(ValueError, match=words), lab.limited(rate):
            pass


def test_loopback_counts_what_is_sent_to_a_listener_and_errors_of_icmp_where_none_is(lab):
    with lab.socket() as receiver, lab.socket() as sender:
        receiver.bind(("127.0.0.1", 0))
        before = lab.counters("lo")
        for _ in range(10):
            sender.sendto(bytes(1472), receiver.getsockname())
        send_gso(sender, 9000, bytes(7 * 9000), receiver.getsockname())
        grown = lab.counters("lo") - before
        for size in (0, 57, 519, 520, 521, 9000, 65507):
            before = lab.counters("lo")
            sender.sendto(bytes(size), ("127.0.0.1", lab.port))
            after = lab.counters("lo") - before
            n_bytes = size + 28 + lab_module.icmp_error_bytes(size)
            assert (after.packets, after.bytes) == (2, n_bytes)
    check(grown, 17, 10 * 1472 + 7 * 9000, messages=11, link_header=grown.link_header)


def test_facts_are_what_the_kernel_says_of_the_device_in_plain_values(each_lab):
    facts = each_lab.facts()
    assert json.loads(json.dumps(facts)) == facts
    assert None not in facts.values()
    own = (each_lab.kind, each_lab.rootless, "noqueue")
    assert (facts["kind"], facts["rootless"], facts["qdisc"]) == own
    need("ip")
    argv = ["ip", "-json", "-details", "link", "show", "dummy1"]
    done = each_lab.run(argv, capture_output=True, text=True, check=True)
    (link,) = json.loads(done.stdout)
    for name in ("mtu", "gso_max_size", "gso_max_segs"):
        assert facts[name] == link[name]
    assert facts["tx_queue_length"] == link["txqlen"]


@pytest.mark.thorough
def test_facts_follow_a_feature_that_is_switched_off():
    text = """
        from pyroute2.ethtool.ioctl import IoctlEthtool
        device = IoctlEthtool("dummy1")
        features = device.get_features()
        features["tx-udp-segmentation"] = False
        device.set_features(features)
        device.set_offload_flag("scatter-gather", False)
    """
    switch_off = [sys.executable, "-c", textwrap.dedent(text)]
    with Lab() as lab:
        before = lab.facts()["offloads"]
        if "PermissionError" in lab.run(switch_off, capture_output=True, text=True).stderr:
            pytest.skip("this user's programs may not change the lab's device")
        after = lab.facts()["offloads"]
    off = ("tx-udp-segmentation", "scatter-gather")
    names = (*off, "tx-checksumming", "generic-segmentation-offload")
    assert before == dict.fromkeys(names, True)
    assert [after[name] for name in (*off, "tx-checksumming")] == [False, False, True]


def test_an_unknown_device_has_no_counters_and_two_kinds_do_not_subtract(lab):
    with pytest.raises(LabError, match="no device 'eth0'"):
        lab.counters("eth0")
    with pytest.raises(ValueError, match="ifb less those of veth"):
        _ = Counters("ifb", 0, 0, 0, 0, 0, 0) - Counters("veth", 0, 0, 0, 0, 0, 0)


# -- programs --


def test_run_returns_status_and_output_of_a_program_with_its_environment_and_folder(lab, tmp_path):
    shell = "cat; echo err >&2; echo $COLOUR; pwd; exit 3"
    how = {"env": {"COLOUR": "blue", "PATH": os.environ["PATH"]}, "cwd": tmp_path}
    done = lab.run(["sh", "-c", shell], input="in ", capture_output=True, text=True, **how)
    assert (done.returncode, done.stderr) == (3, "err\n")
    assert done.stdout == f"in blue\n{tmp_path}\n"
    assert lab.run(["sh", "-c", "kill -TERM $$"]).returncode == -signal.SIGTERM


@pytest.mark.parametrize(
    ("argv", "how", "error", "words"),
    [
        (["false"], {"check": True}, subprocess.CalledProcessError, "status 1"),
        (["no-such-program"], {}, FileNotFoundError, "no-such-program"),
        ([], {}, ValueError, "argv is empty"),
        (["./no-such-program"], {"cwd": "/"}, FileNotFoundError, "no-such-program"),
        (["/etc/passwd"], {}, PermissionError, "passwd"),
        (
            ["sleep", "99"],
            {"timeout": 0.1, "capture_output": True},
            subprocess.TimeoutExpired,
            "0.1",
        ),
    ],
)
def test_a_run_that_cannot_be_is_an_error_that_leaves_the_lab_usable(lab, argv, how, error, words):
    with pytest.raises(error, match=words):
        lab.run(argv, **how)
    assert lab.run(["true"]).returncode == 0


def test_a_program_enters_a_lab_also_where_the_path_does_not_lead_to_the_systems(lab, monkeypatch):
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent))
    assert lab.run([sys.executable, "-S", "-c", ""]).returncode == 0


def test_popen_has_pipes_and_signals_and_ends_the_program_after_an_exception(lab):
    with lab.popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as cat:
        assert cat.poll() is None
        cat.stdin.write("hello\n")
        cat.stdin.flush()
        assert cat.stdout.readline() == "hello\n"
        with pytest.raises(subprocess.TimeoutExpired):
            cat.wait(0.01)
        cat.terminate()
        assert cat.wait(PATIENCE_S) == -signal.SIGTERM
    assert cat.returncode == -signal.SIGTERM
    cat.kill()  # has ended: nothing happens
    argv = ["sh", "-c", "echo; exec sleep 1000"]
    with contextlib.suppress(ZeroDivisionError), lab.popen(argv, stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        _ = 1 // 0
    assert process.returncode == -signal.SIGKILL


# -- the end --


def test_a_lab_with_two_machines_leaves_no_descriptor_open():
    with Lab(receiver=True):
        pass  # what is loaded once stays open
    gc.collect()  # what other tests have left would go meanwhile
    before = os.listdir("/proc/self/fd")
    with Lab(receiver=True):
        pass
    assert os.listdir("/proc/self/fd") == before


@pytest.mark.parametrize(
    "whom", ["the process group", pytest.param("the parent alone", marks=pytest.mark.thorough)]
)
def test_ctrl_c_ends_the_program_and_leaves_the_lab_usable(whom):
    text = """
        lab = Lab()
        try:
            lab.run(["sh", "-c", "trap 'exit 7' INT; echo $$; sleep 1000 & wait"])
        except KeyboardInterrupt:
            print("interrupted", flush=True)
            print(lab.run(["true"]).returncode, lab.counters().packets)
            lab.close()
    """
    with begun(text) as (parent, (program,)):
        send = os.killpg if whom == "the process group" else os.kill
        wait_for_the_end_of([int(program)], lambda: send(parent.pid, signal.SIGINT))
        out, _ = parent.communicate(timeout=PATIENCE_S)
    assert (out, parent.returncode) == ("interrupted\n0 0\n", 0)


def test_a_program_in_the_lab_receives_ctrl_c_itself():
    text = """
        signal.signal(signal.SIGINT, lambda *_: None)  # what ends the program is not us
        with Lab() as lab:
            print("ended by", lab.popen(["sh", "-c", "echo; exec sleep 1000"]).wait())
    """
    with begun(text) as (parent, _):
        os.killpg(parent.pid, signal.SIGINT)
        out, _ = parent.communicate(timeout=PATIENCE_S)
    assert out == f"ended by {-signal.SIGINT}\n"


def test_what_a_program_started_is_ended_though_it_ends_first_itself():
    # Its children do not care for Ctrl-C, as of all that a script starts in the background.
    with subprocess.Popen(["sh", "-c", "sleep 1000 & sleep 1000 & wait"]) as process:
        while len(found := family(process.pid)) < 3:
            time.sleep(0.01)
        end_family(process, 0.05)
    while any(Path(f"/proc/{pid}").exists() for pid in found):  # until the first process asks
        time.sleep(0.01)


def test_a_lab_outlives_a_fork_that_ends_and_ends_with_its_process_where_nobody_closed_it():
    text = """
        lab = Lab()
        pid = os.fork()
        if pid == 0:
            sys.exit(0)  # runs the finalizers
        os.waitpid(pid, 0)
        process = lab.popen(["sh", "-c", "echo $PPID $$; exec sleep 1000 >/dev/null"])
        sys.stdin.readline()
    """
    with begun(text) as (parent, words):
        assert len(words) == 2
        pids = [int(pid) for pid in words]
        wait_for_the_end_of(pids, lambda: parent.communicate("\n", timeout=PATIENCE_S))
    assert parent.returncode == 0


# -- destinations --


def test_loopback_is_a_fine_destination_and_an_unknown_host_an_error_in_one_line():
    for host in ("127.0.0.1", "127.3.2.1", "localhost", "0.0.0.0"):
        lab_module.check_destination(host)
    with pytest.raises(LabError, match="no address is known"):
        lab_module.check_destination("not a host")


def test_a_real_interface_is_refused_by_name_unless_asked_for():
    """The other end of a lab's veth is like a container's, which leads into the world."""
    text = """
        for host in ("192.168.31.1", "::ffff:192.168.31.1"):
            try:
                lab_module.check_destination(host)
            except lab_module.LabError as error:
                print(error)
            lab_module.check_destination(host, allow_real_network=True)
    """
    with Lab("veth", receiver=True) as lab:
        done = lab.receiver.run(script(text), capture_output=True, text=True)
    assert done.stderr == ""
    refused = re.findall("reached through far0, a real.*--allow-real-network", done.stdout)
    assert len(refused) == 2


def test_in_a_lab_its_device_is_a_fine_destination(each_lab):
    text = """
        for host in ("192.168.31.2", "239.1.2.3", "127.0.0.1", "192.168.31.1", "198.51.100.1"):
            lab_module.check_destination(host)
    """
    done = each_lab.run(script(text), capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


class Link(dict):
    """What the kernel says of a device."""

    get_attr = dict.get

    @classmethod
    def of(cls, name: str, kind: str | None, **more: object) -> "Link":
        info = cls(IFLA_INFO_KIND=kind)
        return cls(flags=0, IFLA_IFNAME=name, IFLA_LINKINFO=info, IFLA_LINK=7, **more)


def test_a_veth_that_leads_elsewhere_is_a_real_interface():
    for name in ("eth0", "dummy1"):
        assert not route._stays_inside(Link.of(name, "veth", IFLA_LINK_NETNSID=0))
    assert not route._stays_inside(Link.of("eth0", None))
    assert route._stays_inside(Link.of("any", "dummy"))


def test_the_sink_is_found_or_the_error_says_how_to_get_it(monkeypatch, tmp_path):
    monkeypatch.setattr(importlib.resources, "files", lambda package: tmp_path)
    with pytest.raises(LabError, match="pip install"):
        lab_module.sink_path()
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "sink").touch()
    assert lab_module.sink_path() == tmp_path / "bin" / "sink"
