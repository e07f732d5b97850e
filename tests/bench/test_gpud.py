"""gpud's surroundings: missing driver functions respond "not supported", and its network is its own."""

from __future__ import annotations

import ctypes
import os
import socket
import subprocess
from pathlib import Path

import pytest

from bench.gpud import NOT_SUPPORTED, network_of, stub_library, wait_own_network
from tests.nvml import build as build_driver
from tests.support import need

PROGRAM = """\
int nvmlInit_v2(void), nvmlNewer(void), other(void);
int f(void) { return nvmlInit_v2() + nvmlNewer() + other(); }
"""


def test_stubs_are_what_the_program_needs_and_the_driver_lacks(tmp_path: Path) -> None:
    program = tmp_path / "program.so"
    (tmp_path / "program.c").write_text(PROGRAM)
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", str(program), str(tmp_path / "program.c")], check=True)
    stubs = ctypes.CDLL(str(stub_library(program, build_driver(), tmp_path)))
    assert stubs.nvmlNewer() == NOT_SUPPORTED
    assert [name for name in ("nvmlInit_v2", "other") if hasattr(stubs, name)] == []


def test_the_network_of_another_process_is_used_in_the_context_only() -> None:
    need(os.geteuid() == 0, "root, for a network namespace")
    with socket.create_server(("127.0.0.1", 0)) as server:
        process = subprocess.Popen(["unshare", "--net", "--", "sleep", "60"])
        try:
            wait_own_network(process.pid)
            with network_of(process.pid), pytest.raises(OSError, match="unreachable"):
                socket.create_connection(server.getsockname(), timeout=5)
            socket.create_connection(server.getsockname(), timeout=5).close()
        finally:
            process.kill()
            process.wait()
