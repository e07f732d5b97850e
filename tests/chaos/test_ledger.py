"""The ledger detects lost, wrong, unresolved and duplicate notifications."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.chaos.ledger import LATE, REPORT, Ledger, Told, Trouble

DOWN = Trouble("service", "ServiceDown", {"service": "portal"}, began=100.0, ended=200.0)
FIRED = Told(110.0, "m1", "g", True, "ServiceDown", {"service": "portal", "severity": "critical", "cause": "status"})
OVER = replace(FIRED, at=205.0, message="m2", firing=False)


def test_what_was_told_and_ended_is_as_it_should_be() -> None:
    verdict = Ledger([DOWN], [FIRED, OVER]).judge()
    assert (verdict.lost, verdict.unended, verdict.wrong, verdict.again) == ((), (), (), ())
    assert (verdict.told, verdict.ends, verdict.slowest) == (1, 1, 10.0)


@pytest.mark.parametrize(
    ("told", "kind"),
    [
        ([], "lost"),
        ([FIRED], "unended"),
        ([FIRED, OVER, replace(FIRED, at=206.0, message="m3")], "unended"),
        ([FIRED, OVER, replace(FIRED, at=99.0 - LATE, message="m0")], "wrong"),
        ([FIRED, OVER, replace(FIRED, at=201.0 + LATE, message="m3")], "wrong"),
        ([FIRED, OVER, replace(FIRED, message="m4", labels={"service": "other"})], "wrong"),
        ([FIRED, OVER, replace(OVER, message="m4", alert="DiskFull")], "wrong"),
        ([FIRED, replace(FIRED, at=120.0, message="m5"), OVER], "again"),
    ],
)
def test_each_kind_of_mistake_is_seen(told: list[Told], kind: str) -> None:
    verdict = Ledger([DOWN], told).judge()
    assert len(getattr(verdict, kind)) == 1


def test_a_repetition_with_the_same_id_is_counted_and_allowed() -> None:
    verdict = Ledger([DOWN], [FIRED, FIRED, OVER, OVER]).judge()
    assert (verdict.again, verdict.same_id) == ((), 2)


def test_each_run_of_cleanup_has_one_report() -> None:
    piling = Trouble("images pile up", REPORT, {}, began=100.0, must=False)
    first = Told(110.0, "r1", "g", True, REPORT, {"service": "cleanup/images", "node": "gpu-1"}, since="10:00")
    second = replace(first, at=200.0, message="r2", since="11:00")
    assert Ledger([piling], [first, second]).judge().again == ()
    assert len(Ledger([piling], [first, replace(second, since="10:00")]).judge().again) == 1


def test_worse_or_for_another_reason_is_news() -> None:
    worse = replace(FIRED, message="m3", labels={**FIRED.labels, "cause": "refused"})
    assert Ledger([DOWN], [FIRED, worse, OVER]).judge().again == ()


def test_what_need_not_be_told_only_explains() -> None:
    silent = Trouble("agent killed", "AgentSilent", {"node": "gpu-02"}, began=50.0, ended=60.0, must=False)
    word = Told(55.0, "m9", "g", True, "AgentSilent", {"node": "gpu-02", "cause": "agent-down"})
    assert Ledger([silent], []).judge().lost == ()
    verdict = Ledger([silent], [word]).judge()
    assert (verdict.wrong, verdict.explained) == ((), {"agent killed: AgentSilent": 1})


def test_a_second_trouble_of_the_same_service_is_not_told_by_word_of_the_first() -> None:
    second = Trouble("service", "ServiceDown", {"service": "portal"}, began=210.0, ended=300.0)
    ledger = Ledger([DOWN, second], [FIRED, OVER])
    assert len(ledger.judge().lost) == 1
    assert ledger.is_told_over(DOWN)


def test_what_comes_for_the_fourth_time_may_be_flapping() -> None:
    """A flapping alert is not notified again and resolves ten minutes later; the first three are required."""
    times = [replace(DOWN, began=100.0 + 300 * number, ended=200.0 + 300 * number) for number in range(4)]
    assert len(Ledger(times, []).judge().lost) == 3
    late = replace(times[3], began=100.0 + 1801, ended=2000.0)
    assert len(Ledger([*times[:3], late], []).judge().lost) == 4
