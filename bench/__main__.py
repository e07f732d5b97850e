"""Run the benchmarks named on the command line, or all."""

from __future__ import annotations

import importlib
import subprocess
import sys

from bench.report import fails, section, write

BENCHMARKS = (
    "agent", "agent_cluster", "kernel_log", "poll", "view", "detect", "evaluation", "explain", "datasets", "history",
    "page", "pages",
    "alert", "failures", "scale",
)  # fmt: skip


def main(names: list[str]) -> int:
    """Run each benchmark, write its report, and return 1 if a goal was missed that is not known to be."""
    if unknown := set(names) - set(BENCHMARKS):
        print(f"no benchmark {', '.join(sorted(unknown))}; there are: {', '.join(BENCHMARKS)}", file=sys.stderr)
        return 2
    if len(names) != 1:  # in separate processes: children of a large parent look large
        command = [sys.executable, "-m", "bench"]
        codes = [subprocess.run([*command, name], check=False).returncode for name in names or BENCHMARKS]
        return max(codes)
    report = importlib.import_module(f"bench.{names[0]}").run()
    write(report)
    print(section(report), flush=True)
    return int(fails(report.goals))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
