"""A FUSE filesystem that stops answering while a control file exists. Run as a process of its own:

    python stalling_fuse.py MOUNTPOINT CONTROL_FILE

With a number in the control file, it answers with that error instead. It holds one file, cannot be written to, and
reports 1000 blocks of 4096 bytes, 250 of them free.
"""

from __future__ import annotations

import errno
import os
import stat
import sys
import time

import mfusepy


class Stalling(mfusepy.Operations):  # type: ignore[misc]  # mfusepy has no types
    """Responds immediately, or as the control file says."""

    def __init__(self, control: str) -> None:
        self._control = control

    def _stall(self) -> None:
        while os.path.exists(self._control):
            with open(self._control) as control:
                if error := control.read():
                    raise mfusepy.FuseOSError(int(error))
            time.sleep(0.02)

    def getattr(self, path: str, fh: int | None = None) -> dict[str, int]:
        self._stall()
        if path == "/":
            return {"st_mode": stat.S_IFDIR | 0o755, "st_nlink": 2}
        if path == "/data":
            return {"st_mode": stat.S_IFREG | 0o644, "st_nlink": 1, "st_size": 0}
        raise mfusepy.FuseOSError(errno.ENOENT)

    def readdir(self, path: str, fh: int) -> list[str]:
        self._stall()
        return [".", "..", "data"]

    def statfs(self, path: str) -> dict[str, int]:
        self._stall()
        return {"f_bsize": 4096, "f_frsize": 4096, "f_blocks": 1000, "f_bfree": 250, "f_bavail": 250}


if __name__ == "__main__":
    mfusepy.FUSE(Stalling(sys.argv[2]), sys.argv[1], foreground=True, nothreads=True, fsname="nas", subtype="stalling")
