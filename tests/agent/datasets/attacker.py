"""Swaps directories for links to somewhere else, as fast as it can, until its standard input ends. Run as a process:

    python attacker.py ROOT SHARED_FILE

In every user's directory below ROOT, at every level, a directory and the link beside it change places: first under
their path, then, by the descriptors that it still holds, wherever the unit was moved to. In SHARED_FILE the first byte
says whether the other side is at work; the number behind it counts the swaps made while it was.
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
    """Open the directories in which something can be swapped, with the names."""
    found: list[tuple[int, bytes, bytes]] = []
    for user in sorted(name for name in os.listdir(root) if name.startswith("user"))[-3:]:
        with contextlib.suppress(OSError):  # at a link it ends: this one does not want to be misled itself
            directory = os.open(os.path.join(root, user), DIRECTORY)
            for name in LEVELS:
                found.append((directory, name.encode(), name.encode() + b".link"))
                directory = os.open(name, DIRECTORY, dir_fd=directory)
            os.close(directory)
    return found


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
