"""Swaps directories for links to the canary as fast as possible, until its standard input is closed. Run as a process:

    python attacker.py ROOT SHARED_FILE

In each user's directory below ROOT, at every level, a directory and the link next to it are exchanged: first under
their path, then, through the descriptors still held, wherever the unit was moved to. The first byte of SHARED_FILE
tells whether the code under test is running; the number after it counts the swaps made during that time.
"""

from __future__ import annotations

import contextlib
import ctypes
import mmap
import os
import random
import select
import struct
import sys

EXCHANGE = 2
LEVELS = ("datasets", "a", "in", "deep")
DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
_libc = ctypes.CDLL(None, use_errno=True)


def targets(root: str) -> list[tuple[int, bytes, bytes]]:
    """Open directories that contain a pair to swap, with the names of the pair."""
    pairs: list[tuple[int, bytes, bytes]] = []
    for user in sorted(name for name in os.listdir(root) if name.startswith("user"))[-3:]:
        with contextlib.suppress(OSError):  # stop at a link, which would lead out of the root
            directory = os.open(os.path.join(root, user), DIRECTORY)
            for name in LEVELS:
                pairs.append((directory, name.encode(), name.encode() + b".link"))
                directory = os.open(name, DIRECTORY, dir_fd=directory)
            os.close(directory)
    return pairs


def swap_for_a_while(held: list[tuple[int, bytes, bytes]], shared: mmap.mmap) -> None:
    swaps = 0
    for _ in range(300):
        directory, one, other = random.choice(held)
        if _libc.renameat2(directory, one, directory, other, EXCHANGE) == 0 and shared[0]:
            swaps += 1
    shared[8:16] = struct.pack("q", struct.unpack("q", shared[8:16])[0] + swaps)


def main(root: str, shared_file: str) -> None:
    with open(shared_file, "r+b") as file, mmap.mmap(file.fileno(), 16) as shared:
        while not select.select([0], [], [], 0)[0]:
            held = targets(root)
            if held:
                swap_for_a_while(held, shared)
            for directory, *_ in held:
                os.close(directory)


if __name__ == "__main__":
    main(*sys.argv[1:])
