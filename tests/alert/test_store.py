from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from monitor.alert import store as store_module
from monitor.alert.matchers import Matcher
from monitor.alert.model import Acknowledgement, Alert, AlertState, NotificationLogEntry, Phase
from monitor.alert.notify import NotifyDecision
from monitor.alert.silences import Silence
from monitor.alert.store import DAY_SECONDS, KEEP_DAYS, KEEP_ROWS, AlertEventKind, AlertStore
from monitor.facts.findings import Severity
from tests.alert.delivery.sender_support import finding, notification, subject
from tests.support.filesystems import fill, mounted

NOTHING = NotifyDecision()
TOLD = NotificationLogEntry(receiver="bot", group="g", at=5.0, firing={"n1": Severity.WARNING})


def alert(fingerprint: str = "n1", phase: Phase = Phase.FIRING, **more: Any) -> Alert:
    return Alert(
        fingerprint=fingerprint, finding=finding(fingerprint), phase=phase, first_seen_at=1.0, seen_at=2.0, **more
    )


def silence(silence_id: str = "s1", **more: Any) -> Silence:
    given: dict[str, Any] = {"starts_at": 10.0, "ends_at": 100.0, "author": "li", "comment": "moving it"}
    return Silence(id=silence_id, matchers=(Matcher(name="node", op="=", value="n1"),), **(given | more))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "alerts.db"


@pytest.fixture
def store(path: Path) -> Iterator[AlertStore]:
    with closing(AlertStore(str(path))) as opened:
        yield opened


def test_the_book_is_the_same_after_a_restart(path: Path) -> None:
    with closing(AlertStore(str(path))) as store:
        assert store.load() == AlertState()
        store.record({"n1": alert(), "n2": alert("n2")}, NotifyDecision(log_changes={("bot", "g"): TOLD}), 5.0)
        store.record({"n2": alert("n2", Phase.RESOLVED)}, NOTHING, 6.0)
    with closing(AlertStore(str(path))) as store:
        assert store.load() == AlertState(
            alerts={"n1": alert(), "n2": alert("n2", Phase.RESOLVED)}, notification_log={("bot", "g"): TOLD}
        )
        assert store.problem is None


def test_what_is_gone_or_forgotten_is_not_there_any_more(store: AlertStore) -> None:
    store.record(
        {name: alert(name) for name in ("n1", "n2", "n3")}, NotifyDecision(log_changes={("bot", "g"): TOLD}), 5.0
    )
    store.record({"n1": None}, NotifyDecision(log_changes={("bot", "g"): None}, forgotten=("n2",)), 6.0)
    assert store.load() == AlertState(alerts={"n3": alert("n3")})


def test_what_is_told_and_what_is_sent_are_written_together_or_not_at_all(store: AlertStore) -> None:
    broken = replace(notification("g"), users=({"no": object()},))
    with pytest.raises(TypeError):
        store.record({"n1": alert()}, NotifyDecision((notification("f"), broken), {("bot", "g"): TOLD}), 5.0)
    assert store.load() == AlertState()
    assert store.deliveries(10, 5.0) == ()
    assert store.history(0.0) == ()


def test_history_says_what_fired_and_what_was_over(store: AlertStore) -> None:
    phases = [Phase.PENDING, Phase.FIRING, Phase.FIRING, Phase.RESOLVED, Phase.PENDING, Phase.RESOLVED, Phase.FIRING]
    for at, phase in enumerate(phases):
        store.record({"n1": alert(phase=phase)}, NOTHING, float(at))
    events = [(event.at, event.what, event.alert.phase) for event in store.history(0.0)]
    assert events == [
        (6.0, AlertEventKind.FIRED, Phase.FIRING),
        (3.0, AlertEventKind.RESOLVED, Phase.RESOLVED),
        (1.0, AlertEventKind.FIRED, Phase.FIRING),
    ]
    assert [event.at for event in store.history(2.0)] == [6.0, 3.0]
    assert [event.at for event in store.history(0.0, limit=1)] == [6.0]


def test_deliveries_say_where_every_message_is(store: AlertStore) -> None:
    outbox = store.outbox
    names = ("waits", "arrives", "together", "fails", "refused")
    store.record({}, NotifyDecision(tuple(notification(name, at=5.0) for name in names)), 5.0)
    place = {each.notification.group: each.sequence for each in outbox.queue("bot", 60.0, 6.0).waiting}
    outbox.sent(outbox.claim("bot", [place["arrives"], place["together"]], 6.0), "ok", 15.0)
    outbox.failed(outbox.claim("bot", [place["fails"]], 16.0), "down", 10.0, 10.0, 17.0)
    outbox.parked(outbox.claim("bot", [place["refused"]], 18.0), "bad key", 19.0)
    found = {each.group: each for each in store.deliveries(10, 25.0)}
    assert list(found) == list(reversed(names))
    assert {name: (each.state, each.attempts, each.word, each.late) for name, each in found.items()} == {
        "waits": ("waiting", 0, None, 20.0),
        "arrives": ("sent", 1, "ok", 10.0),
        "together": ("sent", 1, "ok", 10.0),
        "fails": ("open", 1, "down", 20.0),
        "refused": ("parked", 1, "bad key", 14.0),
    }
    assert found["arrives"].parcel == found["together"].parcel is not None
    assert len(store.deliveries(2, 25.0)) == 2


def test_silences_are_kept_ended_and_listed(store: AlertStore) -> None:
    store.add_silence(silence("s1"))
    store.add_silence(silence("s2", ends_at=50.0))
    assert [each.id for each in store.silences(20.0)] == ["s2", "s1"]
    assert store.silences(20.0)[1] == silence("s1")
    assert store.end_silence("s1", 30.0)
    assert [each.id for each in store.silences(30.0)] == ["s2"]
    assert not store.end_silence("s1", 30.0)
    assert not store.end_silence("unheard of", 30.0)
    assert store.silences(60.0) == ()


def test_what_is_sent_otherwise_is_remembered_in_the_same_transaction(store: AlertStore) -> None:
    assert store.note("digest") is None
    store.send([notification("digest")], {"digest": b"1"})
    store.send([], {"digest": b"2"})
    assert store.note("digest") == b"2"
    assert [each.group for each in store.deliveries(10, 1.0)] == ["digest"]
    with pytest.raises(TypeError):
        store.send([replace(notification("x"), users=(object(),))], {"digest": b"3"})
    assert store.note("digest") == b"2"


def test_what_is_old_is_forgotten_and_what_waits_never(store: AlertStore) -> None:
    outbox = store.outbox
    long_ago, now = 10.0, KEEP_DAYS * DAY_SECONDS + 1000.0
    for at, name in ((long_ago, "old"), (now, "young")):
        store.record(
            {name: alert(name)}, NotifyDecision((notification(f"{name} sent"), notification(f"{name} waits"))), at
        )
        sent = next(each for each in outbox.queue("bot", 60.0, at).waiting if each.notification.group == f"{name} sent")
        outbox.sent(outbox.claim("bot", [sent.sequence], at), "ok", at)
        store.add_silence(silence(name, ends_at=at + 1.0))
    store.prune(now)
    assert [event.alert.fingerprint for event in store.history(0.0)] == ["young"]
    assert {each.group for each in store.deliveries(10, now)} == {"old waits", "young sent", "young waits"}
    assert [each.id for each in store.silences(0.0)] == ["young"]
    assert set(store.load().alerts) == {"old", "young"}


def test_of_very_much_only_the_latest_is_kept(store: AlertStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_module, "KEEP_ROWS", 3)
    for number in range(8):
        store.record({f"n{number}": alert(f"n{number}")}, NotifyDecision((notification(f"g{number}"),)), float(number))
    waiting = {each.notification.group: each.sequence for each in store.outbox.queue("bot", 60.0, 9.0).waiting}
    for group in ("g1", "g2", "g5", "g6"):
        store.outbox.sent(store.outbox.claim("bot", [waiting[group]], 9.0), "ok", 9.0)
    store.prune(10.0)
    assert [event.alert.fingerprint for event in store.history(0.0)] == ["n7", "n6", "n5"]
    assert [each.group for each in store.deliveries(10, 10.0)] == ["g7", "g6", "g5", "g4", "g3", "g0"]


def test_pruning_an_outbox_that_is_full_holds_up_nobody(store: AlertStore, path: Path) -> None:
    many = 2 * KEEP_ROWS
    with closing(sqlite3.connect(path)) as file, file:
        numbers = "WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < ?)"
        file.execute(
            f"INSERT INTO outbox (receiver, topic, body, parcel, position) {numbers} "
            "SELECT 'bot', 'g', '{}', 'p' || n, 0 FROM numbers",
            (many,),
        )
        file.execute(
            "INSERT INTO parcels (id, receiver, state, attempts, failures, tried_at, next_at, done_at) "
            f"{numbers} SELECT 'p' || n, 'bot', 'sent', 1, 0, 9, 9, 9 FROM numbers",
            (many,),
        )
    started = time.monotonic()
    store.prune(10.0)
    assert time.monotonic() - started < 60.0  # comparing each row with each batch takes many minutes
    with closing(sqlite3.connect(path)) as file:
        left = [file.execute(f"SELECT COUNT(*) FROM {table}").fetchone()[0] for table in ("outbox", "parcels")]
    assert left == [KEEP_ROWS, KEEP_ROWS]


def test_a_full_disk_loses_no_alert(tmp_path: Path) -> None:
    with mounted(tmp_path / "disk", "-t", "tmpfs", "-o", "size=4m", "tmpfs"):
        with closing(AlertStore(str(tmp_path / "disk" / "alerts.db"))) as store:
            fill(tmp_path / "disk")
            store.record({"n1": alert()}, NotifyDecision((notification("g"),), {("bot", "g"): TOLD}), 5.0)
            assert store.problem is not None
            (waiting,) = store.outbox.queue("bot", 60.0, 6.0).waiting
            store.outbox.sent(store.outbox.claim("bot", [waiting.sequence], 6.0), "ok", 7.0)
            (tmp_path / "disk" / "full").unlink()
        with closing(AlertStore(str(tmp_path / "disk" / "alerts.db"))) as store:
            assert store.load() == AlertState(alerts={"n1": alert()}, notification_log={("bot", "g"): TOLD})
            assert [each.state for each in store.deliveries(10, 8.0)] == ["sent"]


def test_what_another_version_wrote_is_left_out(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with closing(AlertStore(str(path))) as store:
        store.record({"n1": alert(), "n2": alert("n2")}, NOTHING, 5.0)
    with closing(sqlite3.connect(path)) as other, other:
        other.execute("UPDATE alerts SET body = '{}' WHERE fingerprint = 'n1'")
    with closing(AlertStore(str(path))) as store:
        assert set(store.load().alerts) == {"n2"}
    assert "cannot be decoded" in caplog.text


def severe(fingerprint: str = "n1", phase: Phase = Phase.FIRING, **more: Any) -> Alert:
    given = alert(fingerprint, phase, **more)
    return replace(given, finding=replace(given.finding, severity=Severity.CRITICAL))


def test_history_says_what_got_worse_and_who_takes_care(store: AlertStore) -> None:
    handled = Acknowledgement(at=4.0, by="li")
    states = (
        alert(), severe(), alert(), alert(acknowledged=handled), alert(acknowledged=handled),
        severe(phase=Phase.RESOLVED, acknowledged=handled), severe(),
    )  # fmt: skip
    for at, state in enumerate(states):
        store.record({"n1": state, "n2": alert("n2")}, NOTHING, float(at))
    events = [(event.at, event.what.value) for event in reversed(store.history(0.0, about="n1"))]
    assert events == [(0.0, "fired"), (1.0, "escalated"), (3.0, "acknowledged"), (5.0, "resolved"), (6.0, "fired")]
    assert [event.at for event in store.history(0.0, 1, "n1")] == [6.0]
    assert store.history(0.0, about="n3") == ()


def mentions(store: AlertStore, fingerprint: str, group: str | None = "g", since: float = 0.0) -> list[tuple[str, str]]:
    found = store.mentions(alert(fingerprint, group=group), since, 10)
    return [(mention.receiver, mention.state) for mention in found]


def test_the_notifications_about_an_alert_are_found(store: AlertStore) -> None:
    first = notification("g", subject("n1"), subject("n2"))
    others = (notification("g", subject("n2"), reason="more-subjects"), notification("h", subject("n1")))
    store.record({}, NotifyDecision((first, *others)), 5.0)
    assert mentions(store, "n1") == [("bot", "waiting")]
    assert mentions(store, "n3") == []
    assert mentions(store, "n1", "h") == [("bot", "waiting")]
    assert mentions(store, "n1", since=first.at + 1) == []
    batch = store.outbox.claim("bot", [1], 6.0)
    assert mentions(store, "n1") == [("bot", "open")]
    store.outbox.sent(batch, "errcode 0", 9.0)
    (mention,) = store.mentions(alert("n1", group="g"), 0.0, 10)
    assert (mention.state, mention.at, mention.answer) == ("sent", 9.0, "errcode 0")


def test_a_notification_that_cannot_be_read_is_left_out(path: Path, store: AlertStore) -> None:
    store.record({}, NotifyDecision((notification("g", subject("n1")),)), 5.0)
    with closing(sqlite3.connect(path)) as other, other:
        other.execute("""UPDATE outbox SET body = CAST('{"fingerprint":"n1"' AS BLOB)""")
    assert mentions(store, "n1") == []
