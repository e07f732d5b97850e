"""Settings of this process."""

from __future__ import annotations

import ctypes
import logging
import os
import resource
import sys
from contextlib import suppress
from typing import NoReturn

MALLOPT_ARENA_MAX_CODE = -8  # M_ARENA_MAX of glibc's malloc.h
ARENA_COUNT = 2
MAX_DESCRIPTORS = 65_536  # more are of no use, and some programs iterate over all possible descriptors


def limit_malloc_arenas() -> bool:
    """Limit malloc to a few arenas, and return whether that took effect.

    By default glibc gives each thread its own arena: with many threads, memory freed by one is not reused by others.
    MALLOC_ARENA_MAX takes precedence; other C libraries have no arenas.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None or "MALLOC_ARENA_MAX" in os.environ:
        return False
    return bool(mallopt(MALLOPT_ARENA_MAX_CODE, ARENA_COUNT))


def raise_descriptor_limit() -> None:
    """Raise the limit of open files to what the system permits this process."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MAX_DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, MAX_DESCRIPTORS)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with suppress(OSError, ValueError):  # a sandbox may forbid it
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def max_descriptors() -> int:
    """Number of files that this process may have open."""
    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return MAX_DESCRIPTORS if soft == resource.RLIM_INFINITY else soft


def end_process(code: int) -> NoReturn:
    """End the process at once, with its output written.

    While the interpreter ends in the usual way, a thread that is still inside a C++ library such as RE2 aborts the
    process with SIGABRT.
    """
    logging.shutdown()
    sys.stdout.flush()
    os._exit(code)
