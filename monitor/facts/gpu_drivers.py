"""Drivers of Dynamic Resource Allocation that are for GPUs. A module of its own: the agent needs no more of devices."""

from __future__ import annotations

import re
from functools import lru_cache

_WORDS = re.compile(r"[.-]")


@lru_cache(maxsize=1024)
def is_gpu_driver(name: str) -> bool:
    """Whether a driver, or a device class that is named after one, is for GPUs: `gpu.nvidia.com`."""
    return "gpu" in _WORDS.split(name)
