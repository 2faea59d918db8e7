# SPDX-License-Identifier: BSD-3-Clause
"""A real sshd on this machine, for tests: with a key of its own, and nobody's files changed."""

import contextlib
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.needs import need

SSHD = shutil.which("sshd", path=f"{os.environ['PATH']}{os.pathsep}/usr/sbin")


@contextlib.contextmanager
def running(folder: Path) -> Iterator[str]:
    """Run one, and yield a PATH by whose ssh the host ``there`` is reached."""
    need("ssh")
    if SSHD is None:
        pytest.skip("there is no sshd: apt install openssh-server")
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(exist_ok=True)  # it wants that, and a system that boots makes it
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    for name in ("host", "user"):
        subprocess.run(
            ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / name], check=True
        )
    (folder / "authorized").write_text((folder / "user.pub").read_text())
    (folder / "sshd_config").write_text(
        f"Port {port}\nListenAddress 127.0.0.1\nHostKey {folder}/host\nPidFile none\n"
        f"AuthorizedKeysFile {folder}/authorized\nStrictModes no\nPermitRootLogin yes\n"
        "UsePAM no\nPasswordAuthentication no\nAcceptEnv SPEAD_TUTORIAL_TEST\n"
    )
    (folder / "ssh_config").write_text(
        f"Host there\nHostName 127.0.0.1\nPort {port}\nIdentityFile {folder}/user\n"
        "IdentitiesOnly yes\nStrictHostKeyChecking no\nUserKnownHostsFile /dev/null\n"
        "LogLevel ERROR\nSendEnv SPEAD_TUTORIAL_TEST\n"
    )
    path = _path_with_ssh(folder, f'exec {shutil.which("ssh")} -F {folder}/ssh_config "$@"')
    process = subprocess.Popen(
        [SSHD, "-D", "-e", "-f", folder / "sshd_config"], stderr=(folder / "sshd.log").open("w")
    )
    try:
        _wait_until_it_listens(process, port, folder)
        yield path
    finally:
        process.terminate()
        process.wait()


def _wait_until_it_listens(process: "subprocess.Popen[bytes]", port: int, folder: Path) -> None:
    until = time.monotonic() + 10
    while True:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        assert process.poll() is None, (folder / "sshd.log").read_text()
        assert time.monotonic() < until, "sshd does not listen"
        time.sleep(0.05)


def ssh_to_this_machine(folder: Path) -> str:
    """Make an ssh for which every host is this machine; return a PATH that has it."""
    skip = 'while :; do case "$1" in -o) shift 2;; *) break;; esac; done'
    return _path_with_ssh(folder, f'{skip}\nshift\nexec sh -c "$*"')


def _path_with_ssh(folder: Path, script: str) -> str:
    ssh = folder / "bin" / "ssh"
    ssh.parent.mkdir()
    ssh.write_text(f"#!/bin/sh\n{script}\n")
    ssh.chmod(0o755)
    return f"{ssh.parent}{os.pathsep}{os.environ['PATH']}"
