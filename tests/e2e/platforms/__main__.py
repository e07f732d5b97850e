"""Runs the scenario on every platform, and writes the table unless arguments select tests."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from tests.e2e.platforms.table import FILE, page, results
from tests.e2e.platforms.test_platforms import ADAPTERS

HERE = Path(__file__).parent


def main(arguments: list[str]) -> int:
    with tempfile.TemporaryDirectory() as directory:
        report = Path(directory) / "results.xml"
        line = [sys.executable, "-m", "pytest", str(HERE), "--durations=10", f"--junitxml={report}", *arguments]
        code = subprocess.run(line, check=False).returncode
        if report.exists() and not arguments:
            FILE.write_text(page(ADAPTERS, results(report)), encoding="utf-8")
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
