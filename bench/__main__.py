"""Run the benchmarks named on the command line, or all of them."""

from __future__ import annotations

import importlib
import subprocess
import sys

from bench.report import fails, section, write

BENCHMARKS = ("agent", "view", "detect", "datasets", "page", "alert")


def main(names: list[str]) -> int:
    """Run each, write what it found, and return 1 if a goal was missed that is not known to be."""
    if unknown := set(names) - set(BENCHMARKS):
        print(f"no benchmark {', '.join(sorted(unknown))}; there are: {', '.join(BENCHMARKS)}", file=sys.stderr)
        return 2
    if len(names) != 1:  # each in a process of its own: a large parent makes its children look large
        command = [sys.executable, "-m", "bench"]
        codes = [subprocess.run([*command, name], check=False).returncode for name in names or BENCHMARKS]
        return max(codes)
    report = importlib.import_module(f"bench.{names[0]}").run()
    write(report)
    print(section(report), flush=True)
    return int(fails(report.goals))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
