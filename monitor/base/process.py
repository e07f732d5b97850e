"""Keeps the C library from giving every thread a heap of its own: with many threads that is memory nobody uses."""

from __future__ import annotations

import ctypes
import os

M_ARENA_MAX = -8  # of glibc's malloc.h
FEW = 2


def share_heaps() -> bool:
    """Have all threads that begin from now on share a few heaps. Return whether that is done.

    Who sets MALLOC_ARENA_MAX has decided otherwise; a C library without this has no such heaps.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None or "MALLOC_ARENA_MAX" in os.environ:
        return False
    return bool(mallopt(M_ARENA_MAX, FEW))
