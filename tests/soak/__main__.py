"""Run the soak test: `python -m tests.soak --minutes 30 --nodes 1000`. The exit code is 1 if a bound is exceeded."""

from __future__ import annotations

import argparse
import signal
import sys
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.report import section
from tests.soak.report import report, write
from tests.soak.retention import wind_forward
from tests.soak.run import Plan, run
from tests.soak.verdict import judge


def main(arguments: list[str]) -> int:
    """Run, write the report, and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description="Soak the daemon.")
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--nodes", type=int, default=1000)
    given = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # stopping us also stops our child processes
    with TemporaryDirectory() as name:
        folder = Path(name)
        course = run(Plan(given.minutes, given.nodes), folder, partial(print, flush=True))
        goals = judge(course, wind_forward(folder / "state", folder))
    print(section(report(course, goals)), *course.troubles[:20], sep="\n")
    write(course, goals)
    return 0 if all(goal.met for goal in goals) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
