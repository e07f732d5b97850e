"""Fake GPUs: a driver library written in C, and the file that controls it.

The real vendor binding calls the library, in this process or in any other (`environment`). Everything can change while
a program runs: GPUs get busy or lost; the driver hangs, is unloaded and comes back.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

from tests.support import need

SOURCES = Path(__file__).parent
SONAME = "libnvidia-ml.so.1"
FLAGS = ("-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-fvisibility=hidden", "-pthread")
TEXTS = {"uuid", "name", "pci", "serial"}
NUMBERS = frozenset(re.findall(r"\bX\((\w+), \d+\)", (SOURCES / "fake.h").read_text(encoding="ascii")))
NO_INSTANCE_CODE = 0xFFFFFFFF
NOT_AVAILABLE = 0xFFFFFFFFFFFFFFFF  # the vendor's value for unknown memory
KINDS = {"compute": "c", "graphics": "g", "mps": "m"}
HANG, NOT_SUPPORTED, NO_PERMISSION, FUNCTION_NOT_FOUND, UNKNOWN = -1, 3, 4, 13, 999


def build(target_dir: Path | None = None) -> Path:
    """Path of the library, which is compiled if necessary."""
    sources = sorted(SOURCES.glob("*.[ch]"))
    content = b"".join(source.read_bytes() for source in sources) + " ".join(FLAGS).encode()
    target_dir = target_dir or Path(tempfile.gettempdir()) / f"gpuwarden-nvml-{os.getuid()}"
    library = target_dir / hashlib.sha256(content).hexdigest()[:16] / SONAME
    if not library.exists():
        need(shutil.which("gcc") is not None, "gcc, to build the driver library for tests")
        library.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        fresh = library.with_name(f"{SONAME}.{os.getpid()}")
        c_files = [str(source) for source in sources if source.suffix == ".c"]
        subprocess.run(["gcc", *FLAGS, f"-Wl,-soname,{SONAME}", "-o", str(fresh), *c_files], check=True)
        fresh.rename(library)  # another run may build the same one: either will do
    return library


class FakeNvml:
    """The control file. Every method takes effect at once in every program that uses it."""

    def __init__(self, control: Path, gpus: int = 8) -> None:
        self.control = control
        self._lines: dict[tuple[object, ...], str] = {}
        self._generation = 0
        self._xids = 0
        self._written_at = 0
        self._set(("gpus",), f"gpus {gpus}")

    def environment(self) -> dict[str, str]:
        """Environment variables for another program that uses these GPUs."""
        return {"LD_LIBRARY_PATH": str(build().parent), "FAKE_NVML_CONTROL": str(self.control)}

    def gpus(self, count: int) -> None:
        """Set the number of GPUs. As with the real driver, it takes effect at the next initialisation."""
        self._set(("gpus",), f"gpus {count}")

    def gpu(self, index: int, **values: int | str) -> None:
        """Set any of the keys in `fake.h` of one GPU, for example `gpu(0, util=55, name="NVIDIA H100 80GB HBM3")`."""
        unknown = set(values) - NUMBERS - TEXTS
        assert not unknown, f"no such keys: {sorted(unknown)}"
        self._lines |= {("gpu", index, key): f"gpu {index} {key} {value}" for key, value in values.items()}
        self._write()

    def link(
        self,
        gpu: int,
        link: int,
        *,
        active: bool = True,
        flit: int = 0,
        data: int = 0,
        replay: int = 0,
        recovery: int = 0,
    ) -> None:
        """Set state and error counts of one NVLink; `gpu(0, links=18)` sets their number."""
        counts = f"{int(active)} {flit} {data} {replay} {recovery}"
        self._set(("link", gpu, link), f"link {gpu} {link} {counts}")

    def mig(
        self, gpu: int, gpu_instance: int, compute_instance: int, profile: str, *, total: int, used: int = 0
    ) -> str:
        """Add a MIG instance to a GPU, and return its UUID."""
        uuid = f"MIG-{gpu:08x}-0000-5000-8000-{gpu_instance:06x}{compute_instance:06x}"
        self._lines["gpu", gpu, "mig_mode"] = f"gpu {gpu} mig_mode 1"
        ids = f"{gpu} {gpu_instance} {compute_instance}"
        self._set(("mig", gpu, gpu_instance, compute_instance), f"mig {ids} {total} {used} {uuid} {profile}")
        return uuid

    def destroy_mig(self, gpu: int, gpu_instance: int, compute_instance: int) -> None:
        self._unset("mig", gpu, gpu_instance, compute_instance)

    def process(
        self,
        gpu: int,
        pid: int,
        memory: int = 1 << 30,
        kind: str = "compute",
        *,
        gpu_instance: int = NO_INSTANCE_CODE,
        compute_instance: int = NO_INSTANCE_CODE,
    ) -> None:
        """Let a process hold a GPU."""
        ids = f"{gpu_instance} {compute_instance}"
        self._set(("process", gpu, pid, kind), f"process {gpu} {pid} {memory} {KINDS[kind]} {ids}")

    def end_process(self, gpu: int, pid: int, kind: str = "compute") -> None:
        self._unset("process", gpu, pid, kind)

    def samples(self, gpu: int, samples: Iterable[tuple[int, int]]) -> None:
        """Set the utilization samples of a GPU: timestamps in microseconds, and percent."""
        for timestamp, percent in samples:
            self._lines["sample", gpu, timestamp] = f"sample {gpu} {timestamp} {percent}"
        self._write()

    def xid(self, gpu: int, code: int) -> None:
        """Raise an XID as an event."""
        self._xids += 1
        self._set(("xid", self._xids), f"xid {self._xids} {gpu} {code}")

    def lose(self, gpu: int) -> None:
        """Let a GPU fall off the bus: still counted, no longer responding."""
        self.gpu(gpu, lost=1)

    def find(self, gpu: int) -> None:
        """Bring a lost or removed GPU back."""
        self.gpu(gpu, lost=0, absent=0)

    def remove(self, gpu: int) -> None:
        """Remove a GPU: after the next initialisation it is no longer counted."""
        self.gpu(gpu, absent=1)

    def hang(self, call: str = "*") -> None:
        """Let this call, or all calls, block until `release`."""
        self.answer(call, HANG)

    def unsupported(self, call: str, gpu: int = -1) -> None:
        self.answer(call, NOT_SUPPORTED, gpu)

    def missing_function(self, call: str) -> None:
        """Let the driver be too old for a call."""
        self.answer(call, FUNCTION_NOT_FOUND)

    def answer(self, call: str, code: int, gpu: int = -1) -> None:
        """Let a call (for one GPU, or for all) return this error code."""
        self._set(("answer", call, gpu), f"answer {call} {code} {gpu}")

    def release(self) -> None:
        """Undo `hang`, `unsupported`, `missing_function` and `answer`."""
        self._lines = {key: line for key, line in self._lines.items() if key[0] != "answer"}
        self._write()

    def unload_driver(self) -> None:
        self._set(("driver", "missing"), "driver missing 1")

    def load_driver(self) -> None:
        """Load the driver again, which invalidates everything obtained from it before."""
        self._generation += 1
        self._lines.pop(("driver", "missing"), None)
        self._set(("driver", "generation"), f"driver generation {self._generation}")

    def reload_driver(self, *, answers: int = 1) -> None:
        """Replace the driver under a running program, whose calls return this error until it reinitialises."""
        self._lines["driver", "reload_code"] = f"driver reload_code {answers}"
        self.load_driver()

    def _set(self, key: tuple[object, ...], line: str) -> None:
        self._lines[key] = line
        self._write()

    def _unset(self, *key: object) -> None:
        self._lines.pop(key, None)
        self._write()

    def _write(self) -> None:
        """Replace the file atomically.

        The kernel's timestamps are a few milliseconds apart, but a reader has to notice every change.
        """
        fresh = self.control.with_name(f"{self.control.name}.new")
        content = "\n".join(self._lines.values()) + "\n"
        fresh.write_bytes(content.encode("utf-8", "surrogateescape"))
        self._written_at = max(time.time_ns(), self._written_at + 1)
        os.utime(fresh, ns=(self._written_at, self._written_at))
        fresh.replace(self.control)


class InProcessNvml(FakeNvml):
    """Fake GPUs of this process."""

    def __init__(self, control: Path, library: ctypes.CDLL) -> None:
        super().__init__(control)
        self._library = library
        library.fakeNvmlReset(str(control).encode())

    def calls(self, call: str) -> int:
        """Number of calls of this function since the test began."""
        return int(self._library.fakeNvmlCalls(call.encode()))
