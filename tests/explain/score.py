"""Score of the explanations on the corpus (`make corpus`): right, coarse, unknown and wrong answers per kind.

An answer is the class of the explanation's headline. It is right if the row expects that class, coarse if it is the
parent of an expected class, and wrong if it names any other cause, lacks a text that the row demands, or contains one
that the row forbids. Quoted messages do not count as text of the explanation.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from monitor.base.masking import mask_secrets
from monitor.explain.model import Explanation
from monitor.facts.program_logs import classify_log
from monitor.facts.text import Text
from monitor.present.explanation import render_explanation
from tests.explain.corpus_cases import explain_row
from tests.explain.corpus_classes import class_of
from tests.explain.corpus_rows import (
    CORPUS_DIR,
    FILES,
    KEPT_DIR,
    LOG_FILE,
    CorpusRow,
    FailureClass,
    load_classes,
    load_rows,
)

VERDICTS = ("right", "coarse", "unknown", "wrong")
UNKNOWN = "unknown"
_QUOTED = ("message", "why", "rule", "error")


@dataclass(frozen=True)
class Score:
    """Verdict on one row, with the class of the answer and its text."""

    row: CorpusRow
    verdict: str
    answer: str
    text: str


def score_row(row: CorpusRow, classes: dict[str, FailureClass]) -> Score:
    """Explain one row and compare the answer with what it expects."""
    answer, text = _answer_to_log(row) if row.path.stem == LOG_FILE else _answer(row)
    lower = text.lower()
    said = all(demand.lower() in lower for demand in row.must_say)
    clean = not any(demand.lower() in lower for demand in row.must_not_say)
    return Score(row, _verdict(row, answer, classes, obeys=said and clean), answer, text)


def _answer(row: CorpusRow) -> tuple[str, str]:
    explanation = explain_row(row)
    return class_of(explanation), _unquoted(explanation)


def _answer_to_log(row: CorpusRow) -> tuple[str, str]:
    """The class of a log tail, and the line that leaves the node."""
    (tail,) = row.messages
    result = classify_log(tail)
    return result.name.value, mask_secrets(result.line or "")


def _verdict(row: CorpusRow, answer: str, classes: dict[str, FailureClass], *, obeys: bool) -> str:
    if answer == UNKNOWN and UNKNOWN not in row.expect:
        return "unknown"
    if answer in row.expect:
        return "right" if obeys else "wrong"
    return "coarse" if any(classes[name].parent == answer for name in row.expect) else "wrong"


def _unquoted(explanation: Explanation) -> str:
    """The English text without quoted messages."""

    def bare(text: Text) -> Text:
        return Text(text.key, {name: "…" if name in _QUOTED else value for name, value in text.values.items()})

    stripped = replace(
        explanation,
        headline=bare(explanation.headline),
        evidence=tuple(bare(text) for text in explanation.evidence),
        advice=tuple(bare(text) for text in explanation.advice),
    )
    return "\n".join(render_explanation(stripped, "en"))


def score_files(folder: Path, names: Iterable[str] = FILES) -> dict[str, list[Score]]:
    """Scores of all rows of the folder by file."""
    classes = load_classes()
    return {name: [score_row(row, classes) for row in load_rows(folder / f"{name}.tsv", classes)] for name in names}


def report(scores: dict[str, list[Score]]) -> str:
    """One line per kind and the total."""
    lines = [f"{'':12}{'rows':>6}" + "".join(f"{verdict:>9}" for verdict in VERDICTS) + f"{'right %':>9}"]
    for name, several in (*scores.items(), ("total", [score for each in scores.values() for score in each])):
        counts = Counter(score.verdict for score in several)
        share = 100 * counts["right"] / max(1, len(several))
        figures = "".join(f"{counts[verdict]:>9}" for verdict in VERDICTS)
        lines.append(f"{name:12}{len(several):>6}{figures}{share:>9.1f}")
    return "\n".join(lines)


def misses(scores: dict[str, list[Score]]) -> list[Score]:
    """Rows that are not right."""
    return [score for several in scores.values() for score in several if score.verdict != "right"]


def main(arguments: Sequence[str]) -> int:
    """Print the score; return 1 if an answer is wrong."""
    parser = argparse.ArgumentParser(prog="score", description="Score the explanations on the corpus.")
    parser.add_argument("--kept", action="store_true", help="score the rows kept aside, without showing them")
    parser.add_argument("--misses", action="store_true", help="print the development rows that are not right")
    options = parser.parse_args(arguments)
    if options.kept and not KEPT_DIR.is_dir():
        print(f"no rows kept aside: {KEPT_DIR} does not exist", file=sys.stderr)
        return 2
    scores = score_files(KEPT_DIR if options.kept else CORPUS_DIR)
    print(report(scores))
    if options.misses and not options.kept:
        for score in misses(scores):
            expected = ",".join(score.row.expect)
            print(f"\n{score.row.where} {score.verdict}: {score.answer} instead of {expected}\n{score.text}")
            print(*(f"  = {message}" for message in score.row.messages), sep="\n")
    return int(any(score.verdict == "wrong" for several in scores.values() for score in several))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
