"""Threads share malloc arenas, checked in a subprocess by the arenas that glibc maps."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import ctypes, sys, threading
from monitor.base.process import limit_malloc_arenas
if sys.argv[1] == "shared":
    assert limit_malloc_arenas()
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
gate = threading.Barrier(17)
def work():
    gate.wait()
    for _ in range(200):
        libc.malloc(ctypes.c_size_t(1000))
    gate.wait()
    gate.wait()
for _ in range(16):
    threading.Thread(target=work, daemon=True).start()
gate.wait()
gate.wait()
libc.malloc_info(0, ctypes.c_void_p.in_dll(libc, "stdout"))
libc.fflush(None)
"""


def heaps(how: str) -> int:
    done = subprocess.run([sys.executable, "-c", PROGRAM, how], capture_output=True, text=True, timeout=60, check=True)
    return done.stdout.count("<heap nr=")


@pytest.mark.parametrize(("how", "few"), [("own", False), ("shared", True)])
def test_threads_share_heaps(how: str, few: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MALLOC_ARENA_MAX", raising=False)
    assert (heaps(how) <= 2) is few


LIMIT_PROGRAM = """
import resource
from monitor.base.process import max_descriptors, raise_descriptor_limit
resource.setrlimit(resource.RLIMIT_NOFILE, (100, 300))
before = max_descriptors()
raise_descriptor_limit()
print(before, max_descriptors())
"""


def test_the_limit_of_open_files_is_raised_to_what_is_permitted() -> None:
    done = subprocess.run([sys.executable, "-c", LIMIT_PROGRAM], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["100", "300"]
