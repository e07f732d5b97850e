"""Fixture `nvml`, enabled by `pytest_plugins = ["tests.nvml.fixtures"]` in a test module."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.nvml import InProcessNvml, build

MAX_HANG_SECONDS = 120.0


@pytest.fixture(scope="session")
def nvml_library() -> ctypes.CDLL:
    # From now on the loader returns this library for this soname.
    library = ctypes.CDLL(str(build()), ctypes.RTLD_GLOBAL)
    library.fakeNvmlCalls.restype = ctypes.c_ulong
    return library


@pytest.fixture
def nvml(tmp_path: Path, nvml_library: ctypes.CDLL) -> Iterator[InProcessNvml]:
    fake = InProcessNvml(tmp_path / "nvml.control", nvml_library)
    # A test that fails inside a hanging call could not be interrupted, so nothing hangs longer than this.
    end_of_hang = threading.Timer(MAX_HANG_SECONDS, fake.release)
    end_of_hang.start()
    yield fake
    end_of_hang.cancel()
    end_of_hang.join()
    fake.release()  # no thread stays in a hanging call
