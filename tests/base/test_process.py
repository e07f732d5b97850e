"""Settings of a process. Those of malloc are checked in a subprocess by what glibc maps."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

PROGRAM = """
import ctypes, sys, threading
from monitor.base.process import limit_malloc
if sys.argv[1] == "shared":
    assert limit_malloc()
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
    done = subprocess.run([sys.executable, "-c", PROGRAM, how], capture_output=True, text=True, timeout=300, check=True)
    return done.stdout.count("<heap nr=")


@pytest.mark.parametrize(("how", "few"), [("own", False), ("shared", True)])
def test_threads_share_heaps(how: str, few: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("MALLOC_ARENA_MAX", "MALLOC_MMAP_THRESHOLD_"):
        monkeypatch.delenv(variable, raising=False)
    assert (heaps(how) <= 2) is few


LARGE_PROGRAM = """
import ctypes, sys
from monitor.base.process import limit_malloc
if sys.argv[1] == "limited":
    assert limit_malloc()
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
libc.free.argtypes = [ctypes.c_void_p]
libc.free(libc.malloc(ctypes.c_size_t(16 << 20)))
libc.malloc(ctypes.c_size_t(8 << 20))
libc.malloc_info(0, ctypes.c_void_p.in_dll(libc, "stdout"))
libc.fflush(None)
"""


@pytest.mark.parametrize(("how", "returned"), [("own", False), ("limited", True)])
def test_large_blocks_are_returned_when_freed(how: str, returned: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("MALLOC_ARENA_MAX", "MALLOC_MMAP_THRESHOLD_"):
        monkeypatch.delenv(variable, raising=False)
    command = [sys.executable, "-c", LARGE_PROGRAM, how]
    text = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True).stdout
    mapped = re.search(r'<total type="mmap" count="\d+" size="(\d+)"', text)
    assert mapped is not None
    assert (int(mapped[1]) >= 8 << 20) is returned


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
