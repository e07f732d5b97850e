"""Run the benchmarks named on the command line, or all of them."""

from __future__ import annotations

import importlib
import sys

from bench.report import section, write

BENCHMARKS = ("agent", "view", "detect", "datasets", "page", "alert")


def main(names: list[str]) -> int:
    """Run each, write what it found, and return 1 if a goal was missed."""
    missed = 0
    for name in names or BENCHMARKS:
        if name not in BENCHMARKS:
            print(f"no benchmark {name!r}; there are: {', '.join(BENCHMARKS)}", file=sys.stderr)
            return 2
        report = importlib.import_module(f"bench.{name}").run()
        write(report)
        print(section(report))
        missed += sum(not goal.met for goal in report.goals)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
