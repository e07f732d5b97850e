"""An upgrade from schema 1, which identified an alert by all its labels."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from msgspec.structs import replace

from monitor.alert.announced import announced_labels
from monitor.alert.matchers import parse_matcher
from monitor.alert.migrations import MIGRATIONS, merged_alerts, merged_log
from monitor.alert.model import (
    Acknowledgement,
    Alert,
    AlertState,
    NotificationLogEntry,
    Phase,
    fingerprint_of_key,
    former_key,
    subject_of,
)
from monitor.alert.mute import alert_views
from monitor.alert.routes import NotifyPolicy, Route
from monitor.alert.store import AlertStore
from monitor.base.sqlite import Database
from monitor.base.state_problems import StateProblemKind
from monitor.facts.findings import Finding, Severity
from tests.alert.scenario import CRITICAL, WARNING, Scenario, finding
from tests.alert.schema_1 import (
    CRASH,
    DISK,
    FIRED_AT,
    FOLLOWS,
    IDLE,
    QUEUED,
    RECORDED_UNTIL,
    SHM,
    SHM_QUEUED,
    WEDGED,
    findings,
    restore,
)

ROUTES = (
    Route(("ops",), group_wait=0.0, continue_matching=True),
    Route(("team",), (parse_matcher("queue=batch"),), group_wait=0.0),
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    restore(tmp_path / "alerts.db")
    return tmp_path / "alerts.db"


@pytest.fixture
def store(path: Path) -> Iterator[AlertStore]:
    with closing(AlertStore(str(path))) as opened:
        assert opened.problem is None
        yield opened


@pytest.fixture
def scenario(store: AlertStore) -> Scenario:
    """What follows the upgrade."""
    state, upgraded = store.load(), Scenario(now=RECORDED_UNTIL)
    upgraded.policy = NotifyPolicy(routes=ROUTES, silences=store.silences(RECORDED_UNTIL))
    upgraded.alerts, upgraded.log = dict(state.alerts), dict(state.notification_log)
    return upgraded


def test_alerts_of_one_rule_and_subject_are_merged(store: AlertStore) -> None:
    alerts = store.load().alerts
    assert alerts.keys() == {SHM, CRASH, FOLLOWS, IDLE, DISK, WEDGED}
    shm = alerts[SHM]
    assert (shm.phase, shm.fired_at, shm.absent_since) == (Phase.FIRING, FIRED_AT, None)
    assert shm.notified == ("ops", "team")
    assert shm.acknowledged == Acknowledgement(at=FIRED_AT, by="li", comment="asked zhang")


def test_a_link_to_a_merged_alert_leads_to_the_one_that_is_left(store: AlertStore) -> None:
    assert [store.merged_into(name) for name in (SHM_QUEUED, SHM, DISK, "unknown")] == [SHM, SHM, DISK, "unknown"]


def test_the_notification_log_names_the_alert_that_is_left(store: AlertStore) -> None:
    log = {key: set(entry.firing) for key, entry in store.load().notification_log.items()}
    assert log["ops", "ShmPressure|cause=nearly-full"] == {SHM}
    assert log["team", "ShmPressure|cause=nearly-full"] == {SHM}


def test_causes_are_known_by_their_new_keys(store: AlertStore) -> None:
    alerts = store.load().alerts
    assert alerts[FOLLOWS].finding.explained_by == alerts[CRASH].finding.key


def test_what_was_acknowledged_or_silenced_still_is(store: AlertStore, scenario: Scenario) -> None:
    scenario.evaluate(*findings(store).values(), after=1.0)
    state = AlertState(scenario.alerts, scenario.log)
    views = {view.alert.fingerprint: view for view in alert_views(state, scenario.policy, scenario.now)}
    assert views[IDLE].silenced_by == "s1"
    assert views[IDLE].alert.acknowledged is not None
    assert views[SHM].silenced_by is None


def test_nothing_is_sent_again_and_everyone_is_told_of_the_end(store: AlertStore, scenario: Scenario) -> None:
    found = list(findings(store).values())
    for _ in range(3):
        assert scenario.evaluate(*found, after=20.0) == ()
        scenario.restart()
    assert scenario.evaluate(after=1.0) == ()
    ends = [(each.receiver, each.reason.value, each.group.split("|")[0]) for each in scenario.evaluate(after=60.0)]
    assert sorted(ends) == [
        ("ops", "resolved", "DiskFull"),
        ("ops", "resolved", "PodStartFailed"),
        ("ops", "resolved", "ShmPressure"),
        ("team", "resolved", "ShmPressure"),
    ]


def test_a_firing_alert_keeps_the_labels_that_it_was_sent_with(store: AlertStore, scenario: Scenario) -> None:
    before = {name: announced(alert) for name, alert in store.load().alerts.items() if alert.notified}
    scenario.evaluate(*findings(store).values(), after=1.0)
    assert {name: announced(scenario.alerts[name]) for name in before} == before
    assert "queue" not in before[SHM]
    assert scenario.alerts[SHM].finding.labels["queue"] == "batch"


def announced(alert: Alert) -> dict[str, str]:
    return announced_labels(subject_of(alert, alert.phase, fresh=False), None)


def test_the_previous_version_refuses_the_migrated_file(path: Path, store: AlertStore) -> None:
    store.close()
    with closing(Database(str(path), MIGRATIONS[:1])) as older:
        assert older.problem is not None
        assert older.problem.kind is StateProblemKind.NEWER
    with closing(AlertStore(str(path))) as again:
        assert again.load().alerts.keys() == {SHM, CRASH, FOLLOWS, IDLE, DISK, WEDGED}


def test_an_alert_without_receivers_has_those_of_the_log(path: Path) -> None:
    with closing(sqlite3.connect(path)) as file:
        file.execute("UPDATE alerts SET body = replace(body, '\"notified\":[', '\"older\":[')")
        assert file.execute("SELECT count(*) FROM alerts WHERE instr(body, 'notified')").fetchall() == [(0,)]
        file.commit()
    with closing(AlertStore(str(path))) as store:
        assert {name for name, alert in store.load().alerts.items() if alert.notified} == {SHM, CRASH, IDLE, DISK}


def test_rows_that_cannot_be_read_stay_as_they_are(path: Path) -> None:
    with closing(sqlite3.connect(path)) as file:
        file.execute("INSERT INTO alerts VALUES ('odd', 'firing', x'00')")
        file.execute("INSERT INTO told VALUES ('ops', 'odd', x'00')")
        file.commit()
    with closing(AlertStore(str(path))) as store:
        assert SHM in store.load().alerts
    with closing(sqlite3.connect(path)) as file:
        assert file.execute("SELECT phase FROM alerts WHERE fingerprint = 'odd'").fetchall() == [("firing",)]


# The rules of merging.

POD = finding(rule="shm-pressure", namespace="ml", pod="p")
LATER = replace(POD, labels=POD.labels | QUEUED)


def stored(found: Finding, phase: Phase, at: float, **more: object) -> Alert:
    """An alert as schema 1 stored it."""
    fired = {"fired_at": at} if phase is not Phase.PENDING else {}
    resolved = {"resolved_at": at + 60.0} if phase is Phase.RESOLVED else {}
    values = {"first_seen_at": at, "seen_at": at, **fired, **resolved, **more}
    fingerprint = fingerprint_of_key(former_key(found.rule, found.labels))
    return Alert(fingerprint=fingerprint, finding=found, phase=phase, **values)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("first", "second", "kept"),
    [
        pytest.param((Phase.FIRING, 1.0), (Phase.FIRING, 2.0), 0, id="the older one"),
        pytest.param((Phase.FIRING, 2.0), (Phase.FIRING, 1.0), 1, id="whatever its labels"),
        pytest.param((Phase.RESOLVED, 1.0), (Phase.FIRING, 2.0), 1, id="firing before resolved"),
        pytest.param((Phase.PENDING, 1.0), (Phase.FIRING, 2.0), 1, id="firing before pending"),
        pytest.param((Phase.PENDING, 2.0), (Phase.RESOLVED, 1.0), 0, id="pending before resolved"),
    ],
)
def test_which_of_two_is_kept(first: tuple[Phase, float], second: tuple[Phase, float], kept: int) -> None:
    both = [stored(POD, *first), stored(LATER, *second)]
    (alert,), merged = merged_alerts(both)
    assert (alert.fingerprint, alert.phase) == (both[kept].fingerprint, both[kept].phase)
    assert merged == {both[1 - kept].fingerprint: both[kept].fingerprint}


def test_two_in_one_phase_are_one_with_all_that_is_known() -> None:
    first = stored(POD, Phase.FIRING, 5.0, absent_since=9.0, notified=("ops",), first_seen_at=4.0)
    second = stored(LATER, Phase.FIRING, 6.0, notified=("team", "ops"), first_seen_at=3.0, seen_at=12.0)
    (alert,), _ = merged_alerts([second, first])
    assert (alert.first_seen_at, alert.fired_at, alert.seen_at, alert.absent_since) == (3.0, 5.0, 12.0, None)
    assert alert.notified == ("ops", "team")


def test_two_absent_ones_resolve_when_the_later_one_would() -> None:
    both = [stored(POD, Phase.FIRING, 1.0, absent_since=9.0), stored(LATER, Phase.FIRING, 2.0, absent_since=7.0)]
    (alert,), _ = merged_alerts(both)
    assert alert.absent_since == 9.0


def test_different_subjects_stay_different() -> None:
    other = replace(POD, labels=POD.labels | {"pod": "q"})
    alerts, merged = merged_alerts([stored(POD, Phase.FIRING, 1.0), stored(other, Phase.FIRING, 1.0)])
    assert (len(alerts), merged) == (2, {})


def entry(receiver: str, group: str, **firing: Severity) -> NotificationLogEntry:
    return NotificationLogEntry(receiver=receiver, group=group, at=1.0, firing=firing)


@pytest.mark.parametrize(
    ("entries", "expect"),
    [
        pytest.param([entry("r", "g", old=WARNING)], [{"kept": WARNING}], id="is renamed"),
        pytest.param([entry("r", "g", old=CRITICAL, kept=WARNING)], [{"kept": CRITICAL}], id="the worse severity"),
        pytest.param([entry("r", "g", kept=WARNING, x=WARNING)], [{"kept": WARNING, "x": WARNING}], id="stays"),
        pytest.param(
            [entry("r", "g", kept=WARNING), entry("r", "h", old=WARNING)], [{"kept": WARNING}, None], id="one group"
        ),
        pytest.param(
            [entry("r", "h", old=WARNING, x=WARNING), entry("r", "g", kept=WARNING)],
            [{"x": WARNING}, {"kept": WARNING}],
            id="the group of the alert that is kept",
        ),
        pytest.param([entry("r", "h", old=WARNING)], [{"kept": WARNING}], id="the only group"),
        pytest.param(
            [entry("r", "g", kept=WARNING), entry("s", "h", old=WARNING)],
            [{"kept": WARNING}, {"kept": WARNING}],
            id="each receiver has its own",
        ),
    ],
)
def test_the_log_after_merging(entries: list[NotificationLogEntry], expect: list[dict[str, Severity] | None]) -> None:
    after = merged_log(entries, {"old": "kept"}, {"kept": "g"})
    assert [each.firing if each is not None else None for each in after] == expect
