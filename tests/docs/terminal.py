"""Terminals in which the commands of a document are typed, on a machine of their own: gpu-01, with an old dataset."""

from __future__ import annotations

import contextlib
import os
import pty
import re
import select
import struct
import subprocess
import termios
import time
from collections.abc import Iterator, Mapping
from fcntl import ioctl
from pathlib import Path

from tests.support import MIN_WAIT_SECONDS, need, wait_until
from tests.support.filesystems import need_mounting, run

ROWS, COLUMNS = 50, 140
OLD_DAYS = 92
INTERRUPT = b"\x03"
_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")  # colours and movements of the cursor
# In namespaces of its own: mounts, host name and processes are not those of the machine that runs the test.
NAMESPACES = ("--mount", "--uts", "--pid")
MACHINE = """
mount -t tmpfs none /mnt
mkdir /mnt/share
mount -o loop "$1" /mnt/share
hostname gpu-01
echo ready
exec sleep infinity
"""


class Terminal:
    """A shell in a terminal, and all that it has shown."""

    def __init__(self, process: subprocess.Popen[bytes], descriptor: int) -> None:
        self._process, self._descriptor = process, descriptor
        self._ends = 0
        self.text = ""

    def type(self, line: str) -> None:
        os.write(self._descriptor, f"{line}\n".encode())

    def stop(self) -> None:
        """Press Ctrl-C, and wait until the program has ended."""
        os.write(self._descriptor, INTERRUPT)
        self._wait_for_end("the program")

    def run(self, line: str) -> str:
        """Type a command line, and return what it prints. Its exit code has to be 0."""
        start = len(self.text)
        self.type(line)
        self.wait_for_success(line)
        return self.text[start:]

    def wait_for_success(self, line: str) -> None:
        """Wait until the command line that was typed last has ended. Its exit code has to be 0."""
        code = self._wait_for_end(repr(line))
        assert code == 0, f"{line!r} ended with code {code}:\n{self.text[-4000:]}"

    def _wait_for_end(self, what: str) -> int:
        """Exit code of what runs, as soon as it has ended."""
        self._ends += 1
        self.type(f"echo end-{self._ends}=$?")
        return int(self.wait_for(rf"end-{self._ends}=(\d+)\n", f"the end of {what}")[1])

    def wait_for(self, pattern: str, what: str, start: int = 0) -> re.Match[str]:
        """Match of the pattern in the text from `start`, as soon as there is one."""
        deadline = time.monotonic() + MIN_WAIT_SECONDS
        while (found := re.compile(pattern).search(self.text, start)) is None:
            ready, _, _ = select.select([self._descriptor], [], [], max(0.0, deadline - time.monotonic()))
            assert ready, f"not within {MIN_WAIT_SECONDS} s: {what}:\n{self.text[-4000:]}"
            read = os.read(self._descriptor, 65536).decode("utf-8", "replace")
            self.text = _CONTROL.sub("", self.text + read).replace("\r\n", "\n")
        return found


@contextlib.contextmanager
def terminal(machine: int, directory: Path, environ: Mapping[str, str]) -> Iterator[Terminal]:
    """A terminal of the machine whose first process is given."""
    outside, inside = pty.openpty()
    ioctl(inside, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    enter = ["nsenter", "--target", str(machine), *NAMESPACES, f"--wdns={directory}"]
    line = [*enter, "setsid", "--ctty", "--wait", "bash", "--noprofile", "--norc", "--noediting", "-i"]
    process = subprocess.Popen(line, env=environ, stdin=inside, stdout=inside, stderr=inside)
    os.close(inside)
    try:
        shell = Terminal(process, outside)
        shell.type("stty -echo; PS1= PS2=")
        shell.run("true")
        yield shell
    finally:
        process.kill()
        process.wait()
        os.close(outside)


@contextlib.contextmanager
def machine(directory: Path) -> Iterator[int]:
    """Process id of the first process of a machine named gpu-01 with datasets in /mnt/share/datasets."""
    need_mounting()
    need(os.path.exists("/dev/loop-control"), "loop devices")
    image = directory / "datasets.img"
    make_datasets(image)
    line = ["unshare", *NAMESPACES, "--fork", "--kill-child", "--mount-proc", "sh", "-ec", MACHINE, "sh", str(image)]
    with subprocess.Popen(line, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n", "the machine could not be set up"
            children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
            wait_until(lambda: children.read_text().split(), 10, "the first process of the machine")
            yield int(children.read_text().split()[0])
        finally:
            process.kill()


def make_datasets(image: Path) -> None:
    """A filesystem with a dataset that was last used 92 days ago, and a new one. Only debugfs sets change times."""
    source = image.with_suffix("")
    for name, megabytes in (("imagenet-2012", 6), ("coco-2017", 3)):
        (source / "datasets" / name).mkdir(parents=True)
        (source / "datasets" / name / "train.tar").write_bytes(os.urandom(megabytes << 20))
    with image.open("wb") as file:
        file.truncate(32 << 20)
    run("mkfs.ext4", "-q", "-F", "-O", "^has_journal", "-d", source, image)
    then = int(time.time()) - OLD_DAYS * 86400
    script = image.with_suffix(".debugfs")
    script.write_text(
        "".join(
            f"set_inode_field {path} {field} @{then}\n"
            for path in ("datasets/imagenet-2012", "datasets/imagenet-2012/train.tar")
            for field in ("atime", "ctime", "mtime")
        )
    )
    run("debugfs", "-w", "-f", script, image)
