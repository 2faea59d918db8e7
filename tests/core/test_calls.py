# SPDX-License-Identifier: BSD-3-Clause
"""Calls that have several forms: other calls are errors, for mypy and when they are made."""

import logging
import socket
import subprocess
import sys

import pytest

import spead_tutorial
from spead_tutorial import InprocQueue, MemoryPool, recv, send
from spead_tutorial.send import asyncio as send_asyncio
from support import ROOT

THERE = [("127.0.0.1", 8888)]
UDP = (
    "UdpStream takes (thread_pool, endpoints, config, buffer_size, interface_address)"
    " or (thread_pool, endpoints, config, buffer_size, ttl, interface_address)"
    " or (thread_pool, endpoints, config, buffer_size, ttl, interface_index)"
    " or (thread_pool, endpoints, config, buffer_size, interface_index=...)"
    " or (thread_pool, socket, endpoints, config), and by name ttl, dont_fragment, zero_copy"
)
TCP = "TcpStream takes (thread_pool, endpoints, config, buffer_size, interface_address)"
READER = "takes (port, max_size, buffer_size, bind_hostname) or ("


def test_mypy_takes_calls_of_all_forms_and_no_others(tmp_path):
    pytest.importorskip("mypy", reason="pip install 'spead-tutorial[check]'")
    options = ["--strict", "--config-file", "", "--cache-dir", str(ROOT / "build" / "mypy")]
    calls = ROOT / "tests" / "support" / "calls.py"
    argv = [sys.executable, "-m", "mypy", *options, calls]
    done = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert calls.read_text().count("type: ignore") > 30  # which mypy would call unused


@pytest.mark.parametrize(
    ("call", "words", "forms"),
    [
        (lambda sock: send.UdpStream(), "'thread_pool'", UDP),
        (lambda sock: send.UdpStream(None), "'endpoints'", UDP),
        (lambda sock: send.UdpStream(None, "127.0.0.1", 8888), "and not '127.0.0.1'", UDP),
        (lambda sock: send.UdpStream(None, THERE[0]), f"and not {THERE[0]!r}", UDP),
        (lambda sock: send.UdpStream(None, THERE, 9000), "StreamConfig, not 9000", UDP),
        (lambda sock: send.UdpStream(None, THERE, tttl=4), "'tttl'", UDP),
        (lambda sock: send.UdpStream(None, THERE, None, 0, 4, "", 2), "too many", UDP),
        (lambda sock: send.UdpStream(None, THERE, None, 0, 4.5), "ttl must be a whole", UDP),
        (lambda sock: send.UdpStream(None, THERE, interface_index="lo"), "whole", UDP),
        (lambda sock: send.UdpStream(None, sock), "'endpoints'", UDP),
        (lambda sock: send.UdpStream(None, sock, THERE, zero_copy=True), "'zero_copy'", UDP),
        (lambda sock: send_asyncio.UdpStream(None, THERE, bufer_size=0), "'bufer_size'", UDP),
        (lambda sock: send.TcpStream(None), "'endpoints'", TCP),
        (lambda sock: send.TcpStream(None, "127.0.0.1", 8888), "and not '127.0.0.1'", TCP),
        (lambda sock: send.TcpStream(None, THERE, ttl=4), "'ttl'", TCP),
        (lambda sock: send.TcpStream(None, sock), "TCP socket, and not", TCP),
        (lambda sock: send_asyncio.TcpStream(None, THERE), "and not [", "await TcpStream.connect("),
        (lambda sock: send.InprocStream(None, InprocQueue()), "not a queue", "such as [queue]"),
        (lambda sock: recv.Stream(None).add_udp_reader(), "'port'", READER),
        (lambda sock: recv.Stream(None).add_udp_reader("127.0.0.1"), "'port'", READER),
        (lambda sock: recv.Stream(None).add_udp_reader(0, hostname=""), "'hostname'", READER),
        (lambda sock: recv.Stream(None).add_udp_reader(0, bind_hostname=None), "None", READER),
        (lambda sock: recv.Stream(None).add_udp_reader(sock, 9200, 0), "too many", READER),
        (lambda sock: recv.Stream(None).add_tcp_reader(0, gro=True), "'gro'", READER),
        (lambda sock: recv.Stream(None).add_tcp_reader(sock), "a TCP socket", READER),
        (lambda sock: MemoryPool(1, 2, 3, 4, low_water=5), "'low_water'", "takes (lower, upper,"),
    ],
)
def test_a_call_of_no_form_is_told_which_there_are(call, words, forms):
    with socket.socket(type=socket.SOCK_DGRAM) as sock, pytest.raises(TypeError) as raised:
        call(sock)
    assert words in str(raised.value)
    assert forms in str(raised.value)


def test_what_the_library_logs_is_below_its_logger(caplog):
    assert isinstance(spead_tutorial._logger, logging.Logger)
    with caplog.at_level(logging.WARNING, spead_tutorial._logger.name):
        recv.Stream(None).add_udp_reader(0, buffer_size=1 << 40)
    (record,) = caplog.records
    assert record.name.startswith(f"{spead_tutorial._logger.name}.")
