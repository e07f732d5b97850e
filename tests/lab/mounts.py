"""Find and undo mounts below a directory."""

from __future__ import annotations

import subprocess
from pathlib import Path

MOUNTINFO = Path("/proc/self/mountinfo")
UMOUNT_LIMIT = 10.0


def mounts_below(root: Path, mountinfo: str | None = None) -> list[str]:
    """Mount points in a directory, including itself, innermost first."""
    text = MOUNTINFO.read_text() if mountinfo is None else mountinfo
    points = [_unescape(line.split(" ")[4]) for line in text.splitlines() if line]
    # Later mounts cover earlier ones and have to be unmounted first.
    return [point for point in reversed(points) if point == str(root) or point.startswith(f"{root}/")]


def unmount_below(root: Path) -> None:
    """Unmount everything in a directory; busy mounts are detached lazily."""
    for point in mounts_below(root):
        for command in (["umount", point], ["umount", "--lazy", point]):
            done = subprocess.run(command, capture_output=True, check=False, timeout=UMOUNT_LIMIT)
            if done.returncode == 0:
                break


def _unescape(field: str) -> str:
    """A path in the kernel's notation, with octal escapes decoded."""
    head, *rest = field.split("\\")
    return head + "".join(chr(int(part[:3], 8)) + part[3:] for part in rest)
