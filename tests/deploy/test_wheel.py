"""The package: complete in its wheel, and installed by the commands of docs/install.md."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.docs.pages import ROOT, blocks
from tests.e2e.test_newcomer import repository
from tests.support import need

MARK = "run by tests/deploy/test_wheel.py"
COMMANDS = [block.text for block in blocks(ROOT / "docs" / "install.md") if block.mark == MARK]
NOT_INSTALLED = (".proto",)  # sources of generated modules


def test_the_wheel_has_every_file_of_the_package(tmp_path: Path) -> None:
    source = repository(tmp_path / "source")
    line = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", str(tmp_path)]
    done = subprocess.run([*line, str(source)], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    (wheel,) = tmp_path.glob("gpuwarden-*.whl")
    packed = {name for name in zipfile.ZipFile(wheel).namelist() if name.startswith("monitor/")}
    listed = subprocess.run(["git", "ls-files", "monitor"], cwd=source, capture_output=True, text=True, check=True)
    assert packed == {name for name in listed.stdout.splitlines() if not name.endswith(NOT_INSTALLED)}


@pytest.mark.e2e
@pytest.mark.timeout(1800)
def test_the_documented_commands_install_it(tmp_path: Path) -> None:
    source = repository(tmp_path / "source")
    environ = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    assert COMMANDS
    for commands in COMMANDS:
        line = commands.replace("URL", str(source))
        done = subprocess.run(
            ["bash", "-ec", line], cwd=tmp_path, env=environ, capture_output=True, text=True, timeout=850, check=False
        )
        need("No matching distribution" not in done.stderr and "Connection" not in done.stderr, "a package index")
        assert done.returncode == 0, done.stderr
        assert "gpuwarden, version " in done.stdout
