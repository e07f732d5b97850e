"""Runs tests in a copy of the source tree, with and without a protection."""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.security.removals.model import TOP, Removal, applied

BASELINE_SECONDS = 3600
PROCESS_SECONDS = 180  # a test that hangs where its own limit does not reach it
# Limits without a protection: a condition that never comes true is the usual way to fail.
HURRIED = {"MIN_WAIT_SECONDS": "20", "PYTEST_ADDOPTS": "--timeout=120"}
_PLUGINS = ("-p", "pytest_timeout", "-p", "_hypothesis_pytestplugin")  # loading all of them takes seconds
_LEFT_OUT = (".git", ".venv", "build", "dist", "__pycache__", ".*_cache", ".hypothesis", "*.egg-info")
_OUTCOME = re.compile(r"^(PASSED|FAILED|ERROR) (\S+::.*?)(?: - .*)?$", re.MULTILINE)
_BROKEN_CODE = re.compile(r"^E +(NameError|ImportError|ModuleNotFoundError|UnboundLocalError)\b.*", re.MULTILINE)
_mtimes = itertools.count(int(time.time()) + 1)  # the bytecode cache tells versions apart by whole seconds


@dataclass(frozen=True)
class Outcome:
    """What a run of pytest reported."""

    code: int
    passed: frozenset[str]
    failed: frozenset[str]
    errors: frozenset[str]
    output: str


@dataclass(frozen=True)
class Verdict:
    """Result of a removal: why it is a problem, or None if the test failed as it must."""

    removal: Removal
    problem: str | None
    seconds: float


class TreeCopy:
    """A copy of the source tree in which tests run."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        shutil.copytree(TOP, folder, symlinks=True, ignore=shutil.ignore_patterns(*_LEFT_OUT), dirs_exist_ok=True)
        if (TOP / ".venv").exists():
            (folder / ".venv").symlink_to((TOP / ".venv").resolve())

    def run(self, tests: Iterable[str], seconds: float, settings: Mapping[str, str]) -> Outcome:
        """Run tests with more environment variables and return what became of each."""
        options = ["-q", "-rA", "--tb=short", "--show-capture=no", "--color=no"]
        options.append(f"--basetemp={self.folder}.tmp")  # short, for the sockets in it
        process = subprocess.Popen(
            [sys.executable, "-m", "pytest", *_PLUGINS, *options, *tests],
            cwd=self.folder,
            env={**os.environ, **_environment(self.folder), **settings},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        )
        try:
            output, _ = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            output = f"no end within {seconds:g} s"
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # whatever the test started
            process.wait()
        return outcome_of(process.returncode, output)

    @contextlib.contextmanager
    def without(self, removal: Removal) -> Iterator[None]:
        """The tree without a protection. Raise ValueError if the removal does not fit."""
        path = self.folder / removal.file
        text = path.read_text(encoding="utf-8")
        _write(path, applied(removal, text))
        try:
            yield
        finally:
            _write(path, text)


def _environment(folder: Path) -> dict[str, str]:
    return {
        "PYTHONPATH": str(folder),
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "COLUMNS": "250",
    }


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")
    mtime = next(_mtimes)
    os.utime(path, (mtime, mtime))


def outcome_of(code: int, output: str) -> Outcome:
    """Outcome of a run, from pytest's short summary."""
    found: dict[str, set[str]] = {"PASSED": set(), "FAILED": set(), "ERROR": set()}
    for word, test in _OUTCOME.findall(output):
        found[word].add(test.partition("[")[0])
    return Outcome(code, frozenset(found["PASSED"]), frozenset(found["FAILED"]), frozenset(found["ERROR"]), output)


def problem_of(removal: Removal, outcome: Outcome) -> str | None:
    """Why the outcome does not show that the test depends on the protection, or None if it does."""
    broken = _BROKEN_CODE.search(outcome.output)
    if broken:
        return f"the replacement is broken: {broken[0].removeprefix('E').strip()}"
    if outcome.code == 0:
        skipped = removal.test_function not in outcome.passed
        return "the test is skipped" if skipped else "the test passes without the protection"
    if outcome.code != 1 or removal.test_function not in outcome.failed:
        return f"the test did not run to its end (exit code {outcome.code})"
    return None


def try_removal(tree: TreeCopy, removal: Removal) -> tuple[Verdict, str]:
    """Remove a protection and run its test. Return the verdict and the output of pytest."""
    began, output = time.monotonic(), ""
    try:
        with tree.without(removal):
            outcome = tree.run([removal.test], PROCESS_SECONDS, HURRIED)
        problem, output = problem_of(removal, outcome), outcome.output
    except (ValueError, OSError) as error:
        problem = str(error)
    return Verdict(removal, problem, time.monotonic() - began), output
