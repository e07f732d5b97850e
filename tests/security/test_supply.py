"""Installed packages match the lock file, and an unavailable vulnerability database fails the audit."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", ["runtime.txt", "dev.txt"])
def test_every_dependency_is_pinned_by_hash_and_comes_from_no_named_place(name: str) -> None:
    text = (ROOT / "requirements" / name).read_text()
    entries = re.split(r"\n(?=\S)", text.replace("\\\n", " ").strip())
    loose = [each for each in entries if not re.match(r"[\w.\[\]-]+==\S+.*--hash=sha256:[0-9a-f]{64}", each)]
    assert loose == []
    assert "://" not in text
    assert "--index" not in text


@pytest.mark.parametrize("path", ["deploy/setup/virtualenv", "deploy/Dockerfile", "deploy/install.sh"])
def test_whatever_installs_them_checks_the_hashes(path: str) -> None:
    text = (ROOT / path).read_text().replace("\\\n", " ")
    commands = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    locked = [line for line in commands if re.search(r"\binstall\b.* -r ", line)]
    assert locked, "or it proves nothing"
    assert [line for line in locked if "--require-hashes" not in line] == []


def test_an_audit_that_reaches_nobody_fails_and_says_so(tmp_path: Path) -> None:
    """Stand-ins replace the called programs: one creates an environment, one fails to audit."""
    tool = tmp_path / "tool"
    tool.write_text(
        '#!/bin/sh\nif [ "$2" = venv ]; then mkdir -p "$3/bin"; cp "$0" "$3/bin/pip"; cp "$0" "$3/bin/pip-audit"; fi\n'
        'case "$0" in *pip-audit) echo "ConnectionError: no such host" >&2; exit 1;; esac\n'
    )
    tool.chmod(0o755)
    done = _audit(tool)
    assert done.returncode == 3
    assert "NOT DONE" in done.stderr
    tool.write_text(
        tool.read_text().replace('"ConnectionError: no such host" >&2; exit 1', "No known vulnerabilities found")
    )
    assert _audit(tool).returncode == 0
    tool.write_text(tool.read_text().replace("No known vulnerabilities found", "Found 2 known vulnerabilities; exit 1"))
    assert _audit(tool).returncode == 1


def _audit(tool: Path) -> subprocess.CompletedProcess[str]:
    command = [str(ROOT / "deploy/setup/audit"), str(tool), "requirements/runtime.txt"]
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=os.environ, timeout=300, check=False)
