"""Remove each protection of the threat model in turn: `python -m tests.security.removals [FILTER]`.

The named test must pass with the protection and fail without it. FILTER selects removals by a part of the file name,
protection or test. The exit code is 1 on any problem: a removal that no longer fits, a test that passes without its
protection, a row of the threat model without a removal.
"""

from __future__ import annotations

import queue
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.security.removals.model import Removal, load, without_removal
from tests.security.removals.trial import BASELINE_SECONDS, TreeCopy, Verdict, try_removal
from tests.security.threat_model import protected_tests

WORKERS = 2
OUTPUT_LINES = 25


def main(arguments: Sequence[str]) -> int:
    """Try the selected removals, print a table, and return the exit code."""
    began = time.monotonic()
    every = [(name, removal) for name, removals in load().items() for removal in removals]
    chosen = [removal for name, removal in every if _matches(name, removal, arguments)]
    missing = [] if arguments else without_removal(protected_tests(), [removal for _, removal in every])
    if not chosen:
        print("no removal matches")
        return 1
    with tempfile.TemporaryDirectory(prefix="removals-") as folder:
        problems = _try_all(Path(folder), chosen)
    for line in missing:
        print(f"NO REMOVAL  {line}")
    problems += len(missing)
    print(f"{len(chosen)} protections removed in {time.monotonic() - began:.0f} s, {problems} problems")
    return 1 if problems else 0


def _matches(name: str, removal: Removal, words: Sequence[str]) -> bool:
    return all(word in f"{name} {removal.protection} {removal.test}" for word in words)


def _try_all(folder: Path, removals: Sequence[Removal]) -> int:
    """Run the tests on the whole tree, then without each protection. Return the number of problems."""
    trees: queue.SimpleQueue[TreeCopy] = queue.SimpleQueue()
    for number in range(WORKERS):
        trees.put(TreeCopy(folder / str(number)))
    tests = sorted({removal.test for removal in removals})
    with ThreadPoolExecutor(WORKERS) as pool:
        halves = [tests[number::WORKERS] for number in range(WORKERS)]
        problems = sum(pool.map(lambda half: _check_baseline(trees, half), filter(None, halves)))
        for verdict, output in pool.map(lambda removal: _try_one(trees, removal), removals):
            _print(verdict, output)
            problems += verdict.problem is not None
    return problems


def _check_baseline(trees: queue.SimpleQueue[TreeCopy], tests: Sequence[str]) -> int:
    """Number of tests that do not pass on the unmodified tree."""
    tree = trees.get()
    try:
        outcome = tree.run(tests, BASELINE_SECONDS, {})
    finally:
        trees.put(tree)
    unfit = [test for test in tests if test.partition("[")[0] not in outcome.passed - outcome.failed - outcome.errors]
    for test in unfit:
        print(f"DOES NOT PASS WITH THE PROTECTION  {test}")
    if unfit:
        print(_end(outcome.output))
    return len(unfit)


def _try_one(trees: queue.SimpleQueue[TreeCopy], removal: Removal) -> tuple[Verdict, str]:
    tree = trees.get()
    try:
        return try_removal(tree, removal)
    finally:
        trees.put(tree)


def _print(verdict: Verdict, output: str) -> None:
    removal = verdict.removal
    print(
        f"{'PROBLEM' if verdict.problem else 'fails':8}{verdict.seconds:4.0f} s  {removal.test}  ({removal.protection})"
    )
    if verdict.problem:
        print(f"{'':14}{verdict.problem}\n{_end(output)}")
    sys.stdout.flush()


def _end(output: str) -> str:
    lines = [line for line in output.splitlines() if not line.startswith("PASSED ")]
    return "".join(f"{'':14}| {line}\n" for line in lines[-OUTPUT_LINES:])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
