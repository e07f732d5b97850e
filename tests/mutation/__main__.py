"""Mutate the identity and lifecycle of alerts, and the cleanup plans: `python -m tests.mutation [PART...]`.

Everything runs in a copy below build/mutation. The exit code is 1 if a mutant survives that survivors.tsv does not
explain.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from tests.mutation.survivors import Mutant, explained, mutant_of, unexplained

TOP = Path(__file__).parents[2]
BUILD = TOP / "build" / "mutation"
TOOLS = BUILD / "tools"
NEEDED = Path(__file__).with_name("requirements.txt")
LAUNCHER = Path(__file__).with_name("limits.py")
_PLANNERS = (
    "images", "datasets", "pods", "gpus", "select", "watermarks", "exempt", "image_protection",
    "dataset_protection", "keeps",
)  # fmt: skip
_EXAMPLES = (
    "datasets", "datasets_exact", "gpus", "gpus_exact", "images", "images_exact", "keeps", "pods", "select",
    "watermarks",
)  # fmt: skip
_BROUGHT = ("monitor", "tests", "pyproject.toml")
_LEFT_OUT = ("__pycache__", "e2e", "lab", "browser", "corpus")


@dataclass(frozen=True)
class Part:
    """Mutated modules and the tests that must fail: only examples, which are fast and deterministic."""

    folder: str
    files: tuple[str, ...]
    tests: tuple[str, ...]


PARTS = {
    "lifecycle": Part(
        "monitor/alert",
        (
            "monitor/alert/lifecycle.py",
            "monitor/alert/announced.py",
            "monitor/alert/merging.py",
            "monitor/alert/alertmanager/active.py",
        ),
        (
            "tests/alert/test_lifecycle.py",
            "tests/alert/test_announced.py",
            "tests/alert/test_merging.py",
            "tests/alert/alertmanager/test_active.py",
        ),
    ),
    "subject": Part("monitor/facts", ("monitor/facts/alert_identity.py",), ("tests/facts/test_alert_identity.py",)),
    "cleanup": Part(
        "monitor/cleanup",
        tuple(f"monitor/cleanup/plan/{name}.py" for name in _PLANNERS),
        (
            *(f"tests/cleanup/plan/test_{name}.py" for name in _EXAMPLES),
            "tests/cleanup/execute/test_recheck.py",
            "tests/cleanup/test_schedule.py",
        ),
    ),
}


def main(arguments: list[str]) -> int:
    """Run the named parts, or all; print the results and return the exit code."""
    _install()
    found, status = list[Mutant](), 0
    for name in arguments or PARTS:
        folder = _copy(name, PARTS[name])
        subprocess.run(
            _mutmut("run", "--max-children", str(len(os.sched_getaffinity(0)))),
            cwd=folder,
            env=_environment(),
            check=True,
        )
        outcomes = _outcomes(folder)
        survivors = [_shown(folder, mutant) for mutant, outcome in outcomes.items() if outcome != "killed"]
        found += survivors
        print(f"{name}: {len(outcomes)} mutants, {len(outcomes) - len(survivors)} killed, {len(survivors)} live")
    known = explained()
    print("explained:", dict(Counter(known[mutant] for mutant in found if mutant in known)))
    for mutant in unexplained(found, known):
        print(f"UNEXPLAINED\t{mutant.function}\t{mutant.was}\t{mutant.became}")
        status = 1
    if not arguments:
        for mutant in sorted(set(known) - set(found)):
            print(f"explained, and does not live any more: {mutant.function}: {mutant.became}")
    return status


def _install() -> None:
    shutil.rmtree(BUILD, ignore_errors=True)
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "-q", "install", "--no-deps", "--require-hashes"]
    subprocess.run([*pip, "--only-binary", ":all:", "--target", str(TOOLS), "-r", str(NEEDED)], check=True)


def _copy(name: str, part: Part) -> Path:
    """Copy the files a part's tests need, write mutmut's configuration, and return the directory."""
    folder = BUILD / name
    folder.mkdir()
    for each in _BROUGHT:
        if (TOP / each).is_dir():
            shutil.copytree(TOP / each, folder / each, ignore=shutil.ignore_patterns(*_LEFT_OUT))
        else:
            shutil.copy(TOP / each, folder / each)
    told = {
        "source_paths": [part.folder],
        "only_mutate": part.files,
        "pytest_add_cli_args_test_selection": part.tests,
        "also_copy": _BROUGHT[:2],
        "timeout_constant": 10.0,  # a busy machine must not count as an infinite loop
    }
    with (folder / "pyproject.toml").open("a", encoding="utf-8") as file:
        file.write("\n[tool.mutmut]\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in told.items()))
    return folder


def _mutmut(*arguments: str) -> list[str]:
    return [sys.executable, str(LAUNCHER), *arguments]


def _environment() -> dict[str, str]:
    return os.environ | {"PYTHONPATH": str(TOOLS)}


def _said(folder: Path, *arguments: str) -> str:
    command = _mutmut(*arguments)
    return subprocess.run(command, cwd=folder, env=_environment(), check=True, capture_output=True, text=True).stdout


def _outcomes(folder: Path) -> dict[str, str]:
    """Outcome of each mutant; anything but killed counts as survived."""
    lines = [line.strip().rpartition(": ") for line in _said(folder, "results", "--all", "true").splitlines()]
    return {name: outcome for name, _, outcome in lines if "__mutmut_" in name}


def _shown(folder: Path, name: str) -> Mutant:
    return mutant_of(name, _said(folder, "show", name).partition("\n")[2])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
