from __future__ import annotations

from typing import Any

import pytest

from tests.scorecard.allowed import KEEP, allowed, over_within
from tests.scorecard.judge import Score, judge
from tests.scorecard.model import Episode, May, Occurrence, Shape, Tell
from tests.scorecard.scene import BEGIN

TELL = Tell("disk-full", "datasets", {"node": "{node}", "mount": "/data"})
SHAPE = Shape("full", ("D1",), 600.0, lambda _: iter(()), (TELL,), (May("image-cache-large", {"node": "{node}"}),))
ONE = Occurrence(SHAPE, "o1", "gpu01", BEGIN)
LIMIT = allowed("disk-full", "datasets")
OVER = over_within("disk-full", "datasets")


def episode(after: float = 5.0, over: float | None = 600.0 + KEEP, **given: Any) -> Episode:
    labels = {"node": "gpu01", "mount": "/data"} | given.pop("labels", {})
    fired = BEGIN + after
    fields: dict[str, Any] = {"causes": ["datasets"], "told_at": fired, "rule": "disk-full"} | given
    resolved = None if over is None else BEGIN + over
    return Episode("f", labels=labels, fired_at=fired, resolved_at=resolved, **fields)


def counted(*episodes: Episode) -> tuple[str, tuple[str, ...], bool, bool, int]:
    score: Score = judge((ONE,), episodes)
    (verdict,) = score.verdicts
    return verdict.outcome, verdict.wrong_causes, verdict.ended_early, verdict.overstayed, len(score.false)


CASES: list[tuple[str, list[Episode], tuple[object, ...]]] = [
    ("as it should be", [episode()], ("detected", (), False, False, 0)),
    ("nothing", [], ("missed", (), False, False, 0)),
    ("at the last moment", [episode(LIMIT)], ("detected", (), False, False, 0)),
    ("too late", [episode(LIMIT + 1)], ("late", (), False, False, 0)),
    ("fired and never told", [episode(told_at=None)], ("missed", (), False, False, 0)),
    ("told long after it fired", [episode(told_at=BEGIN + 300)], ("late", (), False, False, 0)),
    ("another cause", [episode(causes=["images"])], ("detected", ("images",), False, False, 0)),
    ("it changes its mind", [episode(causes=["datasets", "logs"])], ("detected", ("logs",), False, False, 0)),
    ("over too early", [episode(over=300.0)], ("detected", (), True, False, 0)),
    ("over too late", [episode(over=600 + OVER + 1)], ("detected", (), False, True, 0)),
    ("never over", [episode(over=None)], ("detected", (), False, True, 0)),
    ("on another node", [episode(labels={"node": "gpu02"})], ("missed", (), False, False, 1)),
    ("before it began", [episode(-5.0)], ("missed", (), False, False, 1)),
    ("another rule", [episode(), episode(rule="gpu-hot")], ("detected", (), False, False, 1)),
    ("a symptom", [episode(), episode(rule="image-cache-large")], ("detected", (), False, False, 0)),
    (
        "explained by it", [episode(), episode(rule="pod-silent", told_at=None, explained_by=episode().key)],
        ("detected", (), False, False, 0),
    ),
    (
        "explained, and told all the same", [episode(), episode(rule="pod-silent", explained_by=episode().key)],
        ("detected", (), False, False, 1),
    ),
    (
        "explained by nothing that happened", [episode(), episode(rule="pod-silent", told_at=None, explained_by="x")],
        ("detected", (), False, False, 1),
    ),
]  # fmt: skip


@pytest.mark.parametrize(("name", "episodes", "expect"), CASES, ids=[case[0] for case in CASES])
def test_what_is_counted(name: str, episodes: list[Episode], expect: tuple[object, ...]) -> None:
    assert counted(*episodes) == expect
