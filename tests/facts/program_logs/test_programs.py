"""Output of programs that really fail, as this machine's Python prints it."""

from __future__ import annotations

import subprocess
import sys

import pytest

from monitor.facts.program_logs import classify_log
from tests.support.failing_programs import PROGRAMS, FailingProgram

HERE = [program for program in PROGRAMS if program.anywhere]


@pytest.mark.parametrize("program", HERE, ids=[program.name for program in HERE])
def test_the_class_of_a_real_failure(program: FailingProgram) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", program.source], capture_output=True, text=True, check=False, timeout=300
    )
    assert ended.returncode != 0
    found = classify_log(ended.stdout + ended.stderr)
    assert found.name.value == program.log_cause, ended.stderr
    assert found.line in (ended.stdout + ended.stderr).splitlines()
