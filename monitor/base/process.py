"""Settings of this process."""

from __future__ import annotations

import ctypes
import os

MALLOPT_ARENA_MAX_CODE = -8  # M_ARENA_MAX of glibc's malloc.h
ARENA_COUNT = 2


def limit_malloc_arenas() -> bool:
    """Limit malloc to a few arenas, and return whether that took effect.

    By default glibc gives each thread its own arena: with many threads, memory freed by one is not reused by others.
    MALLOC_ARENA_MAX takes precedence; other C libraries have no arenas.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None or "MALLOC_ARENA_MAX" in os.environ:
        return False
    return bool(mallopt(MALLOPT_ARENA_MAX_CODE, ARENA_COUNT))
