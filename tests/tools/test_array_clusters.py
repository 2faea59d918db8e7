# SPDX-License-Identifier: BSD-3-Clause
"""An array by ssh and in a job of Slurm's: the how-to's recipes, on machines of a lab."""

import json
import os
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from spead_tutorial.lab import LabArray
from spead_tutorial.lab.array import CONTROL_DEVICE, DATA
from support import ROOT
from support.labs import needs_lab

pytestmark = [needs_lab, pytest.mark.thorough]
BIN, PATIENCE_S = Path(sys.executable).parent, 110
SMALL = "--rate 100 --seconds 60", "--rate 5 --seconds 1"
ALL_ARRIVED = r"^9 pairs, \d+ packets: all arrived\.\n"
ENV = os.environ | {"PATH": f"{BIN}:{os.environ['PATH']}:/usr/sbin"}


@pytest.fixture
def lab() -> Iterator[LabArray]:
    with LabArray(3) as made:
        yield made


def needs(*programs: str) -> None:
    for one in programs:
        if shutil.which(one, path=ENV["PATH"]) is None:
            pytest.skip(f"{one} is missing")


def recipe(heading: str, *changes: tuple[str, str], language: str = "sh") -> str:
    """Return the how-to's commands under a heading, for three small machines."""
    text = (ROOT / "docs/how-to/array.md").read_text().partition(f"### {heading}\n")[2]
    found = re.search(rf"```{language}\n(.*?)```", text, re.S)
    assert found
    commands = found[1]
    for old, new in changes:
        assert old in commands
        commands = commands.replace(old, new)
    return commands


@pytest.fixture
def key(lab: LabArray, tmp_path: Path) -> Path:
    """Have each machine, and the switch, let the caller in who has a key."""
    needs("sshd", "ssh-keygen")
    tmp_path.chmod(0o755)
    for key in ("mine", "host"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", tmp_path / key])
    for machine in (lab.switch, *lab.machines):
        options = ["UsePAM=no", "StrictModes=no", f"AuthorizedKeysFile={tmp_path}/mine.pub"]
        # fmt: off
        argv = [shutil.which("sshd", path=ENV["PATH"]), "-D", "-e", "-f", "/dev/null", "-p", "2222",
                "-h", str(tmp_path / "host"), *(word for one in options for word in ("-o", one))]
        # fmt: on
        server = machine.popen(argv, stderr=subprocess.PIPE, text=True)
        said = server.stderr.readline()
        if "listening" not in said:
            pytest.skip(f"sshd does not start here: {said.strip()}")
    return tmp_path / "mine"


def test_by_ssh_every_packet_arrives(lab, key, tmp_path):
    ssh = f"command ssh -p 2222 -i {key} -o StrictHostKeyChecking=no"
    ssh += " -o UserKnownHostsFile=/dev/null"
    hosts = " ".join(one.control for one in lab.machines)
    text = recipe("By ssh", SMALL, ("10.0.0.2 10.0.0.3 10.0.0.4", hosts), ("10.0.0.1", lab.control),
                  (".venv/bin/dask", str(BIN / "dask")))  # fmt: skip
    words = ["bash", "-c", f'ssh() {{ {ssh} "$@"; }}\n{text}\nwait']
    done = lab.switch.run(words, env=ENV, cwd=tmp_path, capture_output=True, text=True,
                          timeout=PATIENCE_S)  # fmt: skip
    assert re.match(ALL_ARRIVED, done.stdout), done.stderr


def test_by_a_cluster_that_python_makes_by_ssh_every_packet_arrives(lab, key, tmp_path):
    pytest.importorskip("asyncssh")
    how = {"port": 2222, "client_keys": [str(key)], "known_hosts": None}
    made = recipe(
        "By ssh",
        ('"10.0.0.1"', repr(lab.control)),
        ('["10.0.0.2", "10.0.0.3", "10.0.0.4"]', repr([one.control for one in lab.machines])),
        ("[head, *workers],", f"[head, *workers], connect_options={how},"),
        ('"eth0"', f'"{CONTROL_DEVICE}", "local_directory": "{tmp_path}"'),
        language="python",
    )
    words = f"{BIN}/spead-tutorial array --workers 3 --senders 3 --receivers 3 --rate 5 --seconds 1"
    words += f" --data-network {DATA} --allow-real-network --scheduler"
    script = f"""{made}
import subprocess
with cluster:
    subprocess.run([*{words.split()}, cluster.scheduler_address])"""
    done = lab.switch.run([sys.executable, "-c", script], env=ENV, cwd=tmp_path, text=True,
                          capture_output=True, timeout=PATIENCE_S)  # fmt: skip
    assert re.search(ALL_ARRIVED, done.stdout, re.M), done.stderr


@pytest.mark.skipif(os.getuid() != 0, reason="only root starts Slurm")
def test_in_a_job_of_slurm_every_packet_arrives(lab, tmp_path):
    needs("munged", "slurmctld", "slurmd", "sbatch")
    here, sock = socket.gethostname(), tmp_path / "munge"
    (tmp_path / "key").write_bytes(os.urandom(1024))
    (tmp_path / "key").chmod(0o400)
    settings = ["ClusterName=lab", f"SlurmctldHost={here}({lab.control})", "SlurmUser=root",
                f"AuthInfo=socket={sock}", f"StateSaveLocation={tmp_path}", "MpiDefault=none",
                "ProctrackType=proctrack/linuxproc", "TaskPlugin=task/none",
                f"SlurmctldPidFile={tmp_path}/pid", f"SlurmdPidFile={tmp_path}/%n.pid",
                f"SlurmdSpoolDir={tmp_path}/%n",
                "PartitionName=all Nodes=ALL Default=YES"]  # fmt: skip
    for i, machine in enumerate(lab.machines):
        settings.append(f"NodeName=host{i} NodeHostname={here} NodeAddr={machine.control}"
                        f" Port={17000 + i} RealMemory=100")  # fmt: skip
    (tmp_path / "slurm.conf").write_text("\n".join(settings))
    job = tmp_path / "job"
    job.write_text(recipe("In a job of Slurm's", SMALL, ("=8 ", "=3 "), ("s 8 ", "s 3 ")))
    munge = [f"--{what}={tmp_path}/{what}" for what in ("pid-file", "log-file", "seed-file")]
    munge += [f"--socket={sock}", f"--key-file={tmp_path}/key", "--force", "--foreground"]
    how = {"env": ENV | {"SLURM_CONF": str(tmp_path / "slurm.conf")}, "cwd": tmp_path,
           "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}  # fmt: skip
    lab.switch.popen(["munged", *munge], **how)
    lab.switch.popen(["slurmctld", "-D"], **how)
    for i, machine in enumerate(lab.machines):
        machine.popen(["slurmd", "-D", "-N", f"host{i}"], **how)
    submit = 'until sbatch -W -o log "$0"; do sleep 0.2; done'
    lab.switch.popen(["bash", "-c", submit, str(job)], **how).wait(PATIENCE_S)
    found = json.loads((tmp_path / "array.json").read_text() or "{}")
    assert found, (tmp_path / "log").read_text()
    assert (found["whole"], len(found["measured"]["machines"])) == (True, 3)
