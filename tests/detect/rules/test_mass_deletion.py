from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from monitor.detect.base import CleanupDeletion, Limits, RuleContext
from monitor.detect.engine import detect
from monitor.detect.history import DetectionHistory
from monitor.detect.rules.mass_deletion import RULE
from monitor.facts.agents import AgentFact
from monitor.facts.facts_index import make_cluster_facts
from monitor.facts.findings import Finding
from monitor.facts.storage import DiskFact
from tests.detect.builders_storage import GIB, NOW, Continuous, Watch, agent, disk, nas, repeated, silent, text, thawed


def data(used: float, size: float = 2000) -> DiskFact:
    return disk("/data", used, size, device="/dev/sdb1")


def follow(watch: Watch, curve: Sequence[tuple[float, float]]) -> list[Finding]:
    """Findings at the end of a curve of minutes and GiB."""
    found: list[Finding] = []
    for minute, used in curve:
        now = NOW + minute * 60
        found = watch.see(agent("n1", data(used), at=now), now=now)
    return found


@pytest.mark.parametrize(
    ("name", "curve", "fires"),
    [
        ("immediately", [(0, 1000), (1, 700)], True),
        ("over nine minutes", [(0, 1000), (3, 900), (6, 800), (9, 700)], True),
        ("over an hour", [(minute, 1000 - 5 * minute) for minute in range(60)], False),
        ("exactly 20 %", [(0, 1000), (1, 800)], False),
        ("a little more than 20 %", [(0, 1000), (1, 799)], True),
        ("most of little", [(0, 60), (1, 10)], False),
        ("most of a little more", [(0, 61), (1, 10)], True),
        ("it grows", [(0, 100), (1, 900)], False),
        ("first seen empty", [(0, 10)], False),
        ("it grew and was emptied: the most counts", [(0, 500), (2, 1000), (4, 700)], True),
        (
            "after a slow decline that has gone on for long",
            [*((step / 4, 1000 - step / 100) for step in range(80)), (20, 998), (27, 900), (29, 780)],
            True,
        ),
        ("in small steps, seen every 15 seconds", [(step / 4, 1000 - 8 * step) for step in range(36)], True),
    ],
)
def test_curves(name: str, curve: list[tuple[float, float]], fires: bool) -> None:
    assert [finding.severity.value for finding in follow(Watch(RULE), curve)] == (["critical"] if fires else [])


def test_it_says_how_much_in_both_languages() -> None:
    found = follow(Watch(RULE), [(0, 1000), (5, 400)])[0]
    assert found.labels == {"node": "n1", "mount": "/data"}
    assert "600 GiB (60%) of the data on /data of n1 disappeared within 5 min." in text(found)
    assert "It held 1000 GiB and now holds 400 GiB." in text(found)
    assert "600 GiB 数据（60%）在 5 分钟内消失" in text(found, "zh")


def test_it_is_said_for_hours_not_for_ten_minutes() -> None:
    watch, fall = Watch(RULE), [(0.0, 1000.0), (1, 400)]
    assert len(follow(watch, [*fall, (30, 300)])) == 1
    assert "700 GiB" in text(follow(watch, [(60, 300)])[0])
    assert follow(watch, [(7 * 60, 300)]) == []


def test_a_clock_that_is_set_back_does_not_make_it_last_longer() -> None:
    watch, ahead = Watch(RULE), 3 * 1440.0
    assert len(follow(watch, [(ahead, 1000), (ahead + 1, 400), (0, 400)])) == 1
    assert follow(watch, [(7 * 60, 400)]) == []


def test_restored_is_resolved() -> None:
    watch = Watch(RULE)
    follow(watch, [(0, 1000), (1, 400)])
    assert follow(watch, [(30, 990)]) == []


def test_data_that_went_while_nobody_looked() -> None:
    """Whoever deletes data may stop the agent first."""
    watch = Watch(RULE)
    follow(watch, [(0, 1000)])
    watch.see(silent(), now=NOW + 20 * 60)
    assert len(follow(watch, [(40, 100)])) == 1


def test_another_disk_in_its_place_has_lost_nothing() -> None:
    watch = Watch(RULE)
    watch.see(agent("n1", data(1000, 2000)))
    assert watch.see(agent("n1", data(10, 100), at=NOW + 60), now=NOW + 60) == []


def test_a_system_disk_is_cleaned_up_all_the_time() -> None:
    watch = Watch(RULE)
    watch.see(agent("n1", disk(used=900, size=1000)))
    assert watch.see(agent("n1", disk(used=100, size=1000))) == []


def test_a_nas_is_one_finding() -> None:
    watch = Watch(RULE)
    watch.see(*(agent(f"n{i}", nas(900, 1000)) for i in range(3)))
    found = watch.see(*(agent(f"n{i}", nas(100, 1000), at=NOW + 60) for i in range(3)), now=NOW + 60)
    assert [finding.labels for finding in found] == [{"mount": "/nas", "service": "nas:/export"}]


def test_held_while_silent() -> None:
    watch = Watch(RULE)
    follow(watch, [(0, 1000), (1, 400)])
    assert [finding.held for finding in watch.see(silent(), now=NOW + 120)] == [True]
    assert [finding.held for finding in follow(watch, [(3, 400)])] == [False]


def test_what_is_remembered_is_bounded() -> None:
    watch = Watch(RULE)
    follow(watch, [(step / 4, 1000 - step / 10) for step in range(400)])
    assert [len(kept["points"]) <= 15 for kept in watch.memory.values()] == [True]


def test_a_disk_is_sampled_although_it_does_not_change() -> None:
    """An archive that stays untouched for hours is known until it is deleted, and the loss is forgotten on time."""
    watch, archive = Continuous(RULE), agent("n1", data(1000))
    for step in range(30):
        assert watch.see(repeated(archive, NOW + step * 300), now=NOW + step * 300) == []
        assert watch.next_at == NOW + (step + 1) * 300
    then = NOW + 29 * 300 + 120
    found = watch.see(agent("n1", data(400), at=then), now=then)[0]
    assert "600 GiB (60%) of the data on /data of n1 disappeared within 2 min." in text(found)
    assert found.since == then - 120
    emptied, now = agent("n1", data(400)), then
    while (now := watch.next_at or 0.0) < then + 6 * 3600:
        assert len(watch.see(repeated(emptied, now), now=now)) == 1
    assert now == then + 6 * 3600
    assert watch.see(repeated(emptied, now), now=now) == []


def test_evaluating_it_more_often_changes_nothing() -> None:
    once, often = Watch(RULE), Watch(RULE)
    for minute, used in enumerate((1000, 990, 990, 900, 700)):
        now = NOW + minute * 60
        found = once.see(agent("n1", data(used), at=now), now=now)
        for later in (0.0, 20.0, 40.0):
            again = often.see(agent("n1", data(used), at=now), now=now + later)
    assert often.memory == once.memory != {}
    assert [finding.since for finding in again] == [finding.since for finding in found] != []


def seen(*evaluations: tuple[float, tuple[AgentFact, ...], tuple[CleanupDeletion, ...]]) -> list[Finding]:
    """Findings at the end of evaluations: minute, agents, and deletions by cleanup until then."""
    history, found = DetectionHistory(), tuple[Finding, ...]()
    for minute, agents, own in evaluations:
        context = RuleContext(make_cluster_facts(agents=agents), NOW + minute * 60, own_deletions=own)
        detected = detect((RULE,), {RULE.rule: Limits(RULE.limits())}, context, history)
        history, found = thawed(detected.history), detected.findings
    return list(found)


def here(minute: float, used: float, *, roles: tuple[str, ...] = ("data",)) -> tuple[AgentFact, ...]:
    one = disk("/data", used, 2000, device="/dev/sdb1", roles=roles)
    return (agent("n1", disk(), one, at=NOW + minute * 60),)


def own(size: float, ended: float | None = 1.0, **more: Any) -> CleanupDeletion:
    given: dict[str, Any] = {"node": "n1", "path": "/data/share", "began_at": NOW, "bytes": round(size * GIB)}
    return CleanupDeletion(**(given | more), ended_at=None if ended is None else NOW + ended * 60)


OWN: list[tuple[str, CleanupDeletion, tuple[str, ...], bool]] = [
    ("a purge of ours", own(600), ("data",), False),
    ("a purge that goes on", own(600, None), ("data",), False),
    ("a purge of ours, and somebody else's", own(300), ("data",), True),
    ("elsewhere on this node", own(600, path="/other"), ("data",), True),
    ("on another node", own(600, node="n2"), ("data",), True),
    ("long ago", own(600, -60.0), ("data",), True),
    ("images, on a disk that has them", own(600, path=None), ("data", "runtime"), False),
    ("images, on another disk", own(600, path=None), ("data",), True),
    ("nothing was freed", own(0), ("data",), True),
]


@pytest.mark.parametrize(("deletion", "roles", "fires"), [row[1:] for row in OWN], ids=[row[0] for row in OWN])
def test_what_we_delete_ourselves_is_no_loss(deletion: CleanupDeletion, roles: tuple[str, ...], fires: bool) -> None:
    found = seen((0, here(0, 1000, roles=roles), ()), (2, here(2, 400, roles=roles), (deletion,)))
    assert bool(found) is fires


def test_a_disk_may_be_reported_late() -> None:
    """The purge has ended, and the disk is seen as it was before for another two minutes."""
    purged = (own(600, 1.0),)
    assert seen((0, here(0, 1000), ()), (2, here(2, 1000), purged), (3, here(3, 400), purged)) == []


def test_a_nas_is_purged_by_one_of_its_nodes() -> None:
    def nodes(minute: float, used: float) -> tuple[AgentFact, ...]:
        return tuple(agent(f"n{i}", nas(used, 2000), at=NOW + minute * 60) for i in range(3))

    purged = (own(600, path="/nas/share"),)
    assert seen((0, nodes(0, 1000), ()), (2, nodes(2, 400), purged)) == []
    assert len(seen((0, nodes(0, 1000), ()), (2, nodes(2, 400), ()))) == 1
