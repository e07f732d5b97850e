"""Branch coverage of decision code by its packages' tests: `python -m tests.mutation.branches [PYTEST-ARG...]`.

Decision code is what the purity contract in pyproject.toml covers.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.conventions.purity import pure_files

TOP = Path(__file__).parents[2]
PACKAGES = ("detect", "alert", "cleanup", "cluster")
MIN_PERCENT = 90  # per package


def main(arguments: list[str]) -> int:
    """Run the tests, print a table per package, and return 0 if coverage is sufficient."""
    data = TOP / "build" / "coverage"
    data.parent.mkdir(exist_ok=True)
    patterns = {package: ",".join(str(path.relative_to(TOP)) for path in pure_files(package)) for package in PACKAGES}
    command = [sys.executable, "-m", "coverage"]
    environment = os.environ | {"COVERAGE_FILE": str(data)}
    tests = ["-m", "pytest", "-q", "-m", "not e2e", *(f"tests/{package}" for package in PACKAGES), *arguments]
    run = [*command, "run", "--branch", f"--include={','.join(patterns.values())}", *tests]
    failed = subprocess.run(run, cwd=TOP, env=environment, check=False).returncode
    for package, files in patterns.items():
        print(f"\n{package}", flush=True)
        report = [*command, "report", "--precision=1", f"--include={files}", f"--fail-under={MIN_PERCENT}"]
        failed |= subprocess.run(report, cwd=TOP, env=environment, check=False).returncode
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
