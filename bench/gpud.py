"""gpud next to our agent: in a network namespace of its own, with the driver library of the tests.

gpud looks for its public address, measures latencies to servers on the Internet and offers to update itself and to
reboot the machine. It gets no token and a network with nothing but a loopback interface.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import subprocess
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

from bench.process import Cost, measure, running
from tests.nvml import build as build_driver

ADDRESS = "127.0.0.1:15132"
CLONE_NEWNET = 0x40000000
NOT_SUPPORTED = 3  # of NVML
NAMESPACE_LIMIT_SECONDS = 10.0
IN_NAMESPACE = ("unshare", "--net", "--", "sh", "-c", 'ip link set lo up && exec "$0" "$@"')


def gpud_cost(program: Path, environ: dict[str, str], directory: Path) -> Cost:
    """Measure gpud with its defaults and an empty state directory."""
    stubs = stub_library(program, build_driver(), directory)
    state, log = directory / "gpud", directory / "gpud.log"
    run = ["run", "--data-dir", str(state), "--listen-address", ADDRESS, "--enable-auto-update=false"]
    with running([*IN_NAMESPACE, str(program), *run], environ | {"LD_PRELOAD": str(stubs)}, log) as process:
        wait_own_network(process.pid)
        with network_of(process.pid), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the certificate is its own
            return measure(process, f"https://{ADDRESS}/metrics", verify=False)


def stub_library(program: Path, driver: Path, directory: Path) -> Path:
    """A library with the driver's functions that `program` links and the driver library of the tests lacks.

    They respond "not supported". A program in Go ends at the first call of a function that is missing.
    """
    missing = sorted(_symbols(program, "--undefined-only") - _symbols(driver, "--defined-only"))
    source, library = directory / "nvml_stubs.c", directory / "libnvml-stubs.so"
    source.write_text("".join(f"int {name}(void) {{ return {NOT_SUPPORTED}; }}\n" for name in missing))
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", str(library), str(source)], check=True)
    return library


def _symbols(binary: Path, which: str) -> set[str]:
    """Dynamic symbols of NVML in a program or library."""
    ran = subprocess.run(["nm", "--dynamic", which, str(binary)], capture_output=True, text=True, check=True)
    return {name for line in ran.stdout.splitlines() if (name := line.split()[-1].partition("@")[0]).startswith("nvml")}


def wait_own_network(pid: int) -> None:
    """Wait until a process has left our network namespace; RuntimeError on timeout."""
    deadline = time.monotonic() + NAMESPACE_LIMIT_SECONDS
    while os.readlink(f"/proc/{pid}/ns/net") == os.readlink("/proc/self/ns/net"):
        if time.monotonic() > deadline:
            raise RuntimeError("no network namespace of its own, which needs root and unshare (util-linux)")
        time.sleep(0.05)


@contextlib.contextmanager
def network_of(pid: int) -> Iterator[None]:
    """Use the network of another process in this thread until the context exits."""
    with open("/proc/thread-self/ns/net") as own, open(f"/proc/{pid}/ns/net") as other:
        _enter(other.fileno())
        try:
            yield
        finally:
            _enter(own.fileno())


def _enter(namespace: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.setns(namespace, CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), "setns")
