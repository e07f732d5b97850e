"""`make demo`: the product on this machine, with eight cards of the test driver, some of them in trouble.

The cards are the only thing that is not real. The processes on them are: they are started here, and stopped at the end.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.nvml import FakeNvml
from tests.support.command import command

GIB = 1 << 30


@contextmanager
def cards(directory: Path) -> Iterator[FakeNvml]:
    """Set the scene: cards 0 and 1 at work, 2 full of memory that nobody owns, 3 lost, 4 with XID 31, the rest free."""
    nvml = FakeNvml(directory / "nvml", gpus=8)
    workers = [subprocess.Popen(["sleep", "86400"]) for _ in range(2)]
    try:
        for index, worker in enumerate(workers):
            nvml.gpu(index, util=90 - 20 * index, memory_used=60 * GIB, temperature=71, power_mw=310_000)
            nvml.process(index, worker.pid, memory=58 * GIB)
        nvml.gpu(2, memory_used=20 * GIB)
        nvml.lose(3)
        nvml.xid(4, 31)
        yield nvml
    finally:
        for worker in workers:
            worker.kill()
            worker.wait()


def main() -> int:
    """Run `gpuwarden up` among these cards until it is told to stop."""
    with tempfile.TemporaryDirectory() as directory, cards(Path(directory)) as nvml:
        process = subprocess.Popen(command("up", *sys.argv[1:]), env=os.environ | nvml.environment())
        try:
            return process.wait()
        except KeyboardInterrupt:
            return process.wait(10)


if __name__ == "__main__":
    sys.exit(main())
