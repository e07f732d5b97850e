"""Classification of failure messages: how many per second one core parses and classifies.

The messages are the development rows of `tests/explain/corpus`: pulls, starts, mounts and scheduling. Each is made
unique, so that no cache helps. Seconds are CPU time; the best of several runs counts, because others use the machine.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from itertools import islice

from bench.report import Goal, Report
from monitor.explain.error_chain.mounts import classify_mount
from monitor.explain.error_chain.pulls import classify_pull
from monitor.explain.error_chain.scheduling import main_reason, parse_scheduling
from monitor.explain.error_chain.starts import classify_start
from tests.explain.corpus_rows import CORPUS_DIR, MESSAGE_FILES, CorpusRow, load_classes, load_rows

MESSAGES = 5_000
RUNS = 5
MIN_MESSAGES_PER_SECOND = 10_000
Task = tuple[str, Callable[[str], object], str]


def run() -> Report:
    """Classify the messages and return the report."""
    tasks = list(islice(_tasks(), MESSAGES))
    kinds = sorted({kind for kind, _, _ in tasks})
    rates = {kind: _rate([task for task in tasks if task[0] == kind]) for kind in kinds}
    goals = [
        Goal(
            "explain_messages_per_s", _rate(tasks), None, "failure messages parsed and classified per second",
            at_least=MIN_MESSAGES_PER_SECOND,
        )
    ]  # fmt: skip
    rows = [[kind, f"{rate:,.0f}"] for kind, rate in rates.items()]
    return Report(
        "explain", "Failure messages", __doc__ or "", goals, [("By kind", ("kind", "messages per second"), rows)]
    )


def _rate(tasks: list[Task]) -> float:
    seconds = []
    for _ in range(RUNS):
        before = time.process_time()
        for _, classify, message in tasks:
            classify(message)
        seconds.append(time.process_time() - before)
    return len(tasks) / min(seconds)


def _tasks() -> Iterator[Task]:
    classes = load_classes()
    rows = [row for name in MESSAGE_FILES for row in load_rows(CORPUS_DIR / f"{name}.tsv", classes)]
    number = 0
    while True:
        for row in rows:
            for message in row.messages:
                number += 1
                yield _task(row, f"{message} {number}")


def _task(row: CorpusRow, message: str) -> Task:
    kind = row.subject.split(":")[0]
    if row.path.stem == "pulls":
        return "pull", lambda text: classify_pull(text, row.subject), message
    if row.path.stem == "scheduling":
        return "scheduling", lambda text: main_reason(parse_scheduling(text)), message
    return ("mount", classify_mount, message) if kind in ("mount", "attach") else ("start", classify_start, message)
