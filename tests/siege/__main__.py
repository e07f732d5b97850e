"""Run the siege: `python -m tests.siege --minutes 5`. The exit code is 1 if a bound is exceeded."""

from __future__ import annotations

import argparse
import shutil
import signal
import sys
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.report import section
from tests.siege.report import report, write
from tests.siege.run import run
from tests.siege.verdict import judge, missed


def main(arguments: list[str]) -> int:
    """Run, write the report, and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.siege", description="Attack agent and daemon.")
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--logs", type=Path, default=None, help="keep the logs of the product here")
    given = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # stopping us also stops our child processes
    with TemporaryDirectory(prefix="siege-") as name:
        try:
            course = run(given.minutes, Path(name), partial(print, flush=True))
        finally:
            if given.logs is not None:
                given.logs.mkdir(parents=True, exist_ok=True)
                for log in Path(name).glob("*.log"):
                    shutil.copy(log, given.logs)
    goals = judge(course)
    kept = (*course.checks.values(), *course.shared_checks.values())
    problems = sorted({check.problem for checks in kept for check in checks if check.problem})
    print(section(report(course, goals)), *course.unexpected, *problems[:20], sep="\n")
    write(course, goals)
    return 1 if missed(goals) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
