"""Settings of this process."""

from __future__ import annotations

import ctypes
import logging
import os
import resource
import sys
from contextlib import suppress
from typing import NoReturn

# Codes of glibc's malloc.h, and the variables that take precedence.
MALLOPT_ARENA_MAX = ("MALLOC_ARENA_MAX", -8)
MALLOPT_MMAP_THRESHOLD = ("MALLOC_MMAP_THRESHOLD_", -3)
ARENA_COUNT = 2
LARGE_BLOCK_BYTES = 128 << 10
MAX_DESCRIPTORS = 65_536  # more are of no use, and some programs iterate over all possible descriptors


def limit_malloc() -> bool:
    """Limit malloc to a few arenas, make it return large blocks, and return whether both took effect.

    By default glibc gives each thread its own arena: with many threads, memory freed by one is not reused by others.
    And the first large block that is freed raises the size from which blocks are returned to the system: later ones,
    such as lists and scrapes, leave holes of megabytes. Other C libraries have neither.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return False
    options = ((*MALLOPT_ARENA_MAX, ARENA_COUNT), (*MALLOPT_MMAP_THRESHOLD, LARGE_BLOCK_BYTES))
    taken = [variable not in os.environ and bool(mallopt(code, value)) for variable, code, value in options]
    return all(taken)


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
