"""An upgrade from schema 1, which identified an alert by all its labels."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from monitor.alert.announced import announced_labels
from monitor.alert.matchers import parse_matcher
from monitor.alert.migrations import MIGRATIONS
from monitor.alert.model import (
    Acknowledgement,
    Alert,
    AlertState,
    Phase,
    subject_of,
)
from monitor.alert.mute import alert_views
from monitor.alert.routes import NotifyPolicy, Route
from monitor.alert.store import AlertStore
from monitor.base.sqlite import Database
from monitor.base.state_problems import StateProblemKind
from tests.alert.scenario import Scenario
from tests.alert.schema_1 import (
    CRASH,
    DISK,
    FIRED_AT,
    FOLLOWS,
    IDLE,
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
        file.execute("INSERT INTO alerts (rowid, fingerprint, phase, body) VALUES (-1, 'odd', 'firing', x'00')")
        file.execute("INSERT INTO told VALUES ('ops', 'odd', x'00')")
        file.commit()
    with closing(AlertStore(str(path))) as store:
        assert SHM in store.load().alerts
    with closing(sqlite3.connect(path)) as file:
        assert file.execute("SELECT phase FROM alerts WHERE fingerprint = 'odd'").fetchall() == [("firing",)]
