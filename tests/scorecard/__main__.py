"""`python -m tests.scorecard [--seeds N]`: simulate a week per seed and write bench/SCORECARD.md."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tests.scorecard.judge import Score, judge
from tests.scorecard.play import play
from tests.scorecard.report import report
from tests.scorecard.week import SHAPES, plan

FILE = Path(__file__).parents[2] / "bench" / "SCORECARD.md"
HEAD = """# Scorecard

A week of a simulated cluster (8 nodes with 8 GPUs each): everyday work, and every outage of the requirements, in
{shapes} shapes, at times derived from a seed. Facts are simulated; the view, all rules with their default limits, the
alert lifecycle and the messages are the real code. Written by `python -m tests.scorecard --seeds {seeds}`; the first
seed is part of the test run, which fails unless every outage is detected in time with the right cause, and no other
alert fires.

The delay is from the start of an outage until its alert fires. Allowed are the rule's own limit, one evaluation, one
poll of the agents, and what `tests/scorecard/allowed.py` adds, with the reason. An alert must be in a message, must
not resolve before its outage ends, and must resolve soon after.

"""


def main() -> int:
    """Simulate, write and print the scorecard; 1 on any failure."""
    parser = argparse.ArgumentParser(prog="python -m tests.scorecard", description=__doc__)
    parser.add_argument("--seeds", type=int, default=1, help="how many weeks, each with its own seed")
    seeds = parser.parse_args().seeds
    scores: list[tuple[int, Score]] = []
    looks = messages = 0
    for seed in range(1, seeds + 1):
        occurrences = plan(seed)
        record = play(occurrences, seed)
        scores.append((seed, judge(occurrences, record.episodes)))
        looks, messages = looks + record.looks, messages + record.messages
        print(f"seed {seed}: {'well' if scores[-1][1].well else 'not well'}", file=sys.stderr, flush=True)
    said = report(scores, looks, messages)
    FILE.write_text(HEAD.format(shapes=len(SHAPES), seeds=seeds) + said)
    print(said)
    return 0 if all(score.well for _, score in scores) else 1


if __name__ == "__main__":
    sys.exit(main())
