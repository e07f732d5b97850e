"""Run the faults: `python -m tests.chaos --minutes 20 --seed 7`. The exit code is 1 on any failure."""

from __future__ import annotations

import argparse
import random
import sys
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.chaos.driver import Driver
from tests.chaos.report import figures, page, write
from tests.chaos.scene import scene
from tests.lab.lab import Lab


def main(arguments: list[str]) -> int:
    """Run, write the report, and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description="Random faults against the product.")
    parser.add_argument("--minutes", type=float, default=20.0)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--logs", type=Path, default=None, help="keep the logs of the product here")
    given = parser.parse_args(arguments)
    seed = random.randrange(1 << 32) if given.seed is None else given.seed
    say = partial(print, flush=True)
    say(f"seed {seed}")
    lab = Lab.start(owned=True)
    try:
        with TemporaryDirectory(prefix="chaos-") as name, scene(lab, Path(name)) as made:
            try:
                course = Driver(made, seed, say).run(given.minutes * 60)
            finally:
                _keep_logs(Path(name), given.logs)
    finally:
        lab.stop()
    write(course)
    say(page(figures(course)))
    return 1 if course.failures else 0


def _keep_logs(folder: Path, target: Path | None) -> None:
    if target is not None:
        target.mkdir(parents=True, exist_ok=True)
        for log in folder.glob("*.log"):
            (target / log.name).write_bytes(log.read_bytes())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
