"""Branch coverage of the pure packages by their own tests: `python -m tests.mutation.branches [PYTEST-ARG...]`.

The purity contract in pyproject.toml lists them.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path

TOP = Path(__file__).parents[2]
CONTRACT = "decisions are pure: no network, no files, no clock"
PACKAGES = ("detect", "alert", "cleanup", "cluster")
LEAST = 90  # percent, in each package


def pure(package: str) -> list[str]:
    """Patterns of the pure files of a package."""
    contracts = tomllib.loads((TOP / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]["contracts"]
    modules = next(each["source_modules"] for each in contracts if each["name"] == CONTRACT)
    own = [name.replace(".", "/") for name in modules if f"{name}.".startswith(f"monitor.{package}.")]
    return [f"{path}/*" if (TOP / path).is_dir() else f"{path}.py" for path in own]


def main(arguments: list[str]) -> int:
    """Run the tests, print a table per package, and return the exit code: 0 if the coverage of all is sufficient."""
    data = TOP / "build" / "coverage"
    data.parent.mkdir(exist_ok=True)
    patterns = {package: ",".join(pure(package)) for package in PACKAGES}
    command = [sys.executable, "-m", "coverage"]
    environment = os.environ | {"COVERAGE_FILE": str(data)}
    tests = ["-m", "pytest", "-q", "-m", "not e2e", *(f"tests/{package}" for package in PACKAGES), *arguments]
    run = [*command, "run", "--branch", f"--include={','.join(patterns.values())}", *tests]
    failed = subprocess.run(run, cwd=TOP, env=environment, check=False).returncode
    for package, files in patterns.items():
        print(f"\n{package}", flush=True)
        report = [*command, "report", "--precision=1", f"--include={files}", f"--fail-under={LEAST}"]
        failed |= subprocess.run(report, cwd=TOP, env=environment, check=False).returncode
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
