# ruff: noqa: E501  # tables: one row is one line
"""Classes of log tails: the rows of the corpus, and wording of programs that the corpus does not have."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from monitor.agent.log_files import TAIL_CHARS
from monitor.facts.log_tails import LogCause
from monitor.facts.program_logs import classify_log
from tests.explain.corpus_rows import CORPUS_DIR, CorpusRow, load_classes, load_rows

CLASSES = load_classes()
ROWS = load_rows(CORPUS_DIR / "logs.tsv", CLASSES)
TB = 'Traceback (most recent call last):\n  File "/w/train.py", line 1, in <module>\n    main()\n'
TAIL_SECONDS = 1.0  # a tail takes milliseconds; a quadratic pattern would take minutes


@pytest.mark.parametrize("row", ROWS, ids=[f"{row.line}-{row.expect[0]}" for row in ROWS])
def test_rows_of_the_corpus(row: CorpusRow) -> None:
    found = classify_log(row.messages[0])
    assert found.name.value in row.expect
    assert found.line is None if not row.subject else found.line and found.line in row.messages[0]


def test_the_corpus_is_proved_by_the_expected_lines() -> None:
    """A different line of the same error is acceptable, but should be rare."""
    proved = [row for row in ROWS if (classify_log(row.messages[0]).line or "").strip() == row.subject.strip()]
    assert len(proved) >= 0.95 * len(ROWS)


def test_every_class_is_one_of_the_corpus() -> None:
    assert {cause.value for cause in LogCause} <= {name for name, known in CLASSES.items() if "log" in known.kinds}


PROGRESS = "".join(f"step {number} loss 0.{number}\n" for number in range(10, 14))
DECISIONS = [
    ("an exception that the program handled", TB + "KeyError: 'x'\n" + PROGRESS, ("unknown", None, None)),
    ("a handled exception, then a crash", TB + "KeyError: 'x'\n" + PROGRESS + "Killed\n", ("out-of-memory", None, None)),
    ("the last of two exceptions", TB + "ValueError: a\n\nDuring handling of the above exception, another exception occurred:\n\n" + TB + "KeyError: 'b'\n", ("python-exception", "KeyError", None)),
    ("the cause of a vague exception", TB + "FileNotFoundError: [Errno 2] No such file or directory: 'x'\n\nThe above exception was the direct cause of the following exception:\n\n" + TB + "RuntimeError: cannot load\n", ("missing-file", "FileNotFoundError", None)),
    ("a thread's exception before the program's", "Exception in thread Thread-1:\n" + TB + "OSError: [Errno 28] No space left on device\n" + TB + "KeyError: 'x'\n", ("python-exception", "KeyError", None)),
    ("the first rank, not the last", "[rank1]: " + TB.replace("\n", "\n[rank1]: ") + "ValueError: bad\n[rank0]: " + TB.replace("\n", "\n[rank0]: ") + "TypeError: other\n", ("python-exception", "ValueError", 1)),
    ("the rank that the launcher names", "[rank0]: " + TB.replace("\n", "\n[rank0]: ") + "TypeError: other\n[rank1]: " + TB.replace("\n", "\n[rank1]: ") + "ValueError: bad\nRoot Cause (first observed failure):\n[0]:\n  rank      : 1 (local_rank: 1)\n  exitcode  : 1 (pid: 2)\n", ("python-exception", "ValueError", 1)),
    ("Ray's prefix", "(TrainWorker pid=17, ip=10.0.0.3) " + TB.replace("\n", "\n(TrainWorker pid=17, ip=10.0.0.3) ") + "KeyError: 'x'\n", ("python-exception", "KeyError", None)),
    ("escape sequences", "\x1b[31mKeyError\x1b[0m: 'x'\n", ("python-exception", "KeyError", None)),
    ("a structured log", '{"level":"error","message":"Traceback (most recent call last):\\n  File x\\nKeyError: 1"}', ("python-exception", "KeyError", None)),
    ("Chinese error texts", "cp: 写入 '/scratch/x' 时出错: 设备上没有空间\n", ("disk-full", None, None)),
    ("a warning with an error's words", "WARNING: CUDA out of memory, retrying with a smaller batch\ndone\n", ("unknown", None, None)),
    ("words of another error in the program's own message", TB + "ValueError: table of files: permission denied is not a valid column\n", ("python-exception", "ValueError", None)),
]  # fmt: skip


@pytest.mark.parametrize(("name", "tail", "expected"), DECISIONS, ids=[case[0] for case in DECISIONS])
def test_decisions(name: str, tail: str, expected: tuple[str, str | None, int | None]) -> None:
    found = classify_log(tail)
    assert (found.name.value, found.exception, found.rank) == expected


FRAGMENTS = st.sampled_from(
    [TB, "KeyError: 'x'", "\r", "\n", "  rank      : 3", "Root Cause (first observed failure):", "[rank1]: ", "NCCL WARN ",
     "Killed", "\x1b[31m", "a.b.c.", "Error", ": ", "[Errno 28]", "/dev/shm", "(", "worker-0: ", "\x00", "错误", "999 Client Error",
     "An error occurred (", "exits with return code = -", "process rank 1 ", "9" * 40]
)  # fmt: skip


@settings(max_examples=300)
@given(st.one_of(st.text(max_size=2000), st.lists(FRAGMENTS, max_size=60).map("".join)))
def test_any_text_has_a_class(tail: str) -> None:
    found = classify_log(tail)
    assert found.line is None or len(found.line) <= len(tail)
    assert (found.line is None) == (found.name is LogCause.UNKNOWN)


@pytest.mark.parametrize(
    "piece",
    [
        "a",
        " ",
        "[",
        "a.",
        "A",
        "9",
        "Error: ",
        "(pid=1",
        "\n",
        "KeyError: x\n",
        "1/1 [",
        "://a:b",
        '  File "x"\n',
        "a-0: ",
        "step 1 loss\n",
        "\x1b[",
    ],
)
def test_hostile_text_takes_linear_time(piece: str) -> None:
    tail = (piece * (TAIL_CHARS // len(piece) + 1))[:TAIL_CHARS]
    started = time.process_time()
    classify_log(tail)
    assert time.process_time() - started < TAIL_SECONDS
