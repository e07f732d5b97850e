"""The cards as a fixture: `pytest_plugins = ["tests.nvml.fixtures"]` in a test module makes `nvml` available there."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.nvml import InProcessNvml, build

MOST_SECONDS_OF_HANG = 30.0


@pytest.fixture(scope="session")
def nvml_library() -> ctypes.CDLL:
    # Whoever asks the loader for this soname from now on gets this library.
    library = ctypes.CDLL(str(build()), ctypes.RTLD_GLOBAL)
    library.fakeNvmlCalls.restype = ctypes.c_ulong
    return library


@pytest.fixture
def nvml(tmp_path: Path, nvml_library: ctypes.CDLL) -> Iterator[InProcessNvml]:
    fake = InProcessNvml(tmp_path / "nvml.control", nvml_library)
    # A test that fails inside a call that hangs could not even be interrupted: nothing hangs longer than this.
    end_of_hang = threading.Timer(MOST_SECONDS_OF_HANG, fake.release)
    end_of_hang.start()
    yield fake
    end_of_hang.cancel()
    end_of_hang.join()
    fake.release()  # no thread stays behind in a call that hangs
