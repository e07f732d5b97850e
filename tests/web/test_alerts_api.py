"""Alerts over HTTP: queries, changes, and their authorization."""

from __future__ import annotations

import http.client
import json
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

import pytest
from msgspec.structs import replace

from monitor.alert.matchers import parse_matcher
from monitor.alert.model import NotificationReason, Phase
from monitor.alert.silences import Silence
from monitor.alert.store import Delivery
from monitor.facts.findings import Severity
from monitor.present.alerts import LocalizedAlert, LocalizedAlertEvent, ReceiverTestResult
from monitor.present.timeline import TimelineEntry
from monitor.queries.alerts import SilenceRequest, make_silence
from monitor.web.alerts_api import MAX_BODY_BYTES, ApiTokens
from monitor.web.app import create_app
from monitor.web.server import WebServer
from tests.support.command import get
from tests.web.cluster import ACCESS, TOKENS, Client
from tests.web.cluster import site as site_with_people
from tests.web.test_app import EVIL, FakeCluster

AT = 1_700_000_000.0
TOKEN = "s3cret-t0ken"
ADMIN = {"Authorization": f"Bearer {TOKEN}"}
ALERT = LocalizedAlert(
    fingerprint="abc", rule="disk-full", severity=Severity.CRITICAL, cause="images", phase=Phase.FIRING,
    labels={"node": EVIL}, headline=f"Disk of {EVIL} is full", since=AT, advice=(EVIL,), told=("wecom",), group="G",
)  # fmt: skip
SILENCE = Silence(
    id="s1", matchers=(parse_matcher(f"node={EVIL}"),), starts_at=AT, ends_at=AT * 2, author=EVIL, comment=EVIL
)
DELIVERY = Delivery(
    id="d1", receiver="wecom", group=EVIL, reason=NotificationReason.NEW, severity=Severity.CRITICAL, at=AT, subjects=1,
    state="sent", late=0.5, attempts=1, word=EVIL,
)  # fmt: skip


class FakeAlerts:
    """Records its calls."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self.owner: str | None = None
        self.merged: dict[str, str] = {}

    def alerts(self, lang: str) -> tuple[LocalizedAlert, ...]:
        self.calls.append(("alerts", lang))
        return (ALERT if self.owner is None else replace(ALERT, labels=ALERT.labels | {"user": self.owner}),)

    def merged_into(self, fingerprint: str) -> str:
        return self.merged.get(fingerprint, fingerprint)

    def past(self, fingerprint: str, _lang: str) -> LocalizedAlert | None:
        over = replace(ALERT, fingerprint="past", phase=Phase.RESOLVED, resolved_at=AT + 300)
        return over if fingerprint == "past" else None

    def timeline(self, fingerprint: str) -> tuple[TimelineEntry, ...]:
        self.calls.append(("timeline", fingerprint))
        return (
            TimelineEntry(at=AT, what="fired", severity=Severity.CRITICAL),
            TimelineEntry(at=AT + 1, what="notified", who=EVIL, state="sent", reason="new"),
            TimelineEntry(at=AT + 2, what="silenced", who=EVIL, until=AT + 9, detail=EVIL),
        )

    def acknowledge(self, fingerprint: str, by: str, comment: str) -> None:
        self.calls.append(("acknowledge", fingerprint, by, comment))
        if fingerprint == "past":
            raise ValueError("this alert is not firing")

    def history(self, since: float, limit: int, lang: str) -> tuple[LocalizedAlertEvent, ...]:
        self.calls.append(("history", limit, lang))
        return (
            LocalizedAlertEvent(
                at=AT, what="fired", fingerprint="abc", rule="disk-full", severity=Severity.CRITICAL, labels={},
                headline="full",
            ),
        )  # fmt: skip

    def events_about(
        self, labels: Mapping[str, str], since: float, limit: int, lang: str
    ) -> tuple[LocalizedAlertEvent, ...]:
        self.calls.append(("events_about", dict(labels), since))
        return self.history(since, limit, lang)

    def deliveries(self, limit: int) -> tuple[Delivery, ...]:
        self.calls.append(("deliveries", limit))
        return (DELIVERY,)

    def silences(self) -> tuple[Silence, ...]:
        return (SILENCE,)

    def silence(self, request: SilenceRequest) -> Silence:
        self.calls.append(("silence", request))
        return make_silence(request, "s2", AT)

    def unsilence(self, silence_id: str) -> bool:
        self.calls.append(("unsilence", silence_id))
        return silence_id == "s1"

    def test(self, receiver: str | None, rule: str | None) -> tuple[ReceiverTestResult, ...]:
        self.calls.append(("test", receiver, rule))
        if receiver == "nobody":
            raise ValueError("there is no receiver 'nobody'")
        return (ReceiverTestResult(receiver="wecom", kind="wecom", ok=True, answer="errcode 0"),)

    def call(self, body: bytes) -> int:
        self.calls.append(("call", body))
        return 2


@contextmanager
def serving(alerts: FakeAlerts, tokens: ApiTokens | None = None) -> Iterator[str]:
    app = create_app(FakeCluster(), None, alerts, tokens)
    server = WebServer(app, socket.create_server(("127.0.0.1", 0)))
    server.start()
    try:
        yield "http://{}:{}".format(*server.address)
    finally:
        server.begin_stop()
        server.wait_stopped()


def send(url: str, path: str, payload: object = None, method: str = "POST", **headers: str) -> tuple[int, Any]:
    """Send a request; return status and decoded response. Header names are written with _ for -."""
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=60)
    given = {"Content-Type": "application/json"} | {name.replace("_", "-"): text for name, text in headers.items()}
    body = payload if isinstance(payload, bytes) else json.dumps(payload).encode() if payload is not None else None
    try:
        connection.request(method, path, body, given)
        response = connection.getresponse()
        answer = response.read()
        return response.status, json.loads(answer) if answer.startswith((b"{", b"[")) else answer.decode()
    finally:
        connection.close()


@pytest.fixture
def alerts() -> FakeAlerts:
    return FakeAlerts()


@pytest.fixture
def site(alerts: FakeAlerts) -> Iterator[str]:
    with serving(alerts, ApiTokens(daemon=TOKEN)) as url:
        yield url


READ: list[tuple[str, int, Any]] = [
    ("/v1/alerts", 200, ("alerts", "en")),
    ("/v1/alerts?lang=zh", 200, ("alerts", "zh")),
    ("/v1/alerts?lang=fr", 400, None),
    ("/v1/alerts/history", 200, ("history", 500, "en")),
    ("/v1/alerts/history?since=7d&limit=3&lang=zh", 200, ("history", 3, "zh")),
    ("/v1/alerts/history?since=soon", 400, None),
    ("/v1/alerts/history?limit=0", 400, None),
    ("/v1/alerts/history?limit=99999999999999999999", 400, None),
    ("/v1/alerts/history?limit=00000010099999", 400, None),
    ("/v1/alerts/history?limit=²", 400, None),
    ("/v1/deliveries?limit=7", 200, ("deliveries", 7)),
    ("/v1/silences", 200, None),
    ("/v1/alerts/test", 405, None),
    ("/v1/alertmanager", 405, None),
]


@pytest.mark.parametrize(("path", "status", "expect"), READ, ids=[row[0] for row in READ])
def test_what_can_be_asked(alerts: FakeAlerts, site: str, path: str, status: int, expect: Any) -> None:
    answered, headers, _ = get(site + path.replace("²", "%C2%B2"))
    assert answered == status
    assert headers["x-content-type-options"] == "nosniff"
    assert alerts.calls == ([expect] if expect else [])


def test_the_answers_are_the_facts(site: str) -> None:
    (alert,) = json.loads(get(f"{site}/v1/alerts")[2])
    assert (alert["fingerprint"], alert["phase"], alert["told"]) == ("abc", "firing", ["wecom"])
    (silence,) = json.loads(get(f"{site}/v1/silences")[2])
    assert silence["matchers"] == [{"name": "node", "op": "=", "value": EVIL}]
    (delivery,) = json.loads(get(f"{site}/v1/deliveries")[2])
    assert (delivery["state"], delivery["word"]) == ("sent", EVIL)


@pytest.mark.parametrize(
    ("path", "shown"), [("/alerts", "Disk of"), ("/alerts?group=G", "Disk of"), ("/alerts/abc", "What to do")]
)
def test_pages_show_alerts_and_escape_what_others_named(site: str, path: str, shown: str) -> None:
    status, _, body = get(site + path)
    assert status == 200
    assert shown in body
    assert "<script>" not in body


def test_pages_of_what_is_not_there(site: str) -> None:
    assert get(f"{site}/alerts/zzz")[0] == 404
    assert "No alerts are firing" in get(f"{site}/alerts?group=other")[2]


def test_a_silence_is_made_and_ended(alerts: FakeAlerts, site: str) -> None:
    wanted = {"matchers": ["node=gpu1"], "duration": "2h", "author": "li", "comment": "moving"}
    status, made = send(site, "/v1/silences", wanted, **ADMIN)
    assert (status, made["id"], made["ends_at"] - made["starts_at"]) == (201, "s2", 7200.0)
    assert send(site, "/v1/silences/s1", method="DELETE", **ADMIN) == (200, {"ended": "s1"})
    assert send(site, "/v1/silences/s9", method="DELETE", **ADMIN)[0] == 404


@pytest.mark.parametrize(
    ("payload", "words"),
    [
        ({"matchers": [], "duration": "2h"}, "at least one matcher"),
        ({"matchers": ["nod=x"], "duration": "2h"}, "did you mean 'node'?"),
        ({"matchers": ["node=~["], "duration": "2h"}, "invalid pattern"),
        ({"matchers": ["node=x"], "duration": "long"}, "is not a duration"),
        ({"matchers": ["node=x"], "duration": "0s"}, "needs a duration"),
        ({"matchers": ["node=x"]}, "invalid request body"),
        (b"\xff", "invalid request body"),
        (b"[" * 100_000, "invalid request body"),
    ],
)
def test_a_silence_that_makes_no_sense(site: str, payload: object, words: str) -> None:
    status, answer = send(site, "/v1/silences", payload, **ADMIN)
    assert status == 400
    assert words in answer["error"]


def test_a_test_message(alerts: FakeAlerts, site: str) -> None:
    assert send(site, "/v1/alerts/test", {"receiver": "wecom"}, **ADMIN) == (
        200,
        [{"receiver": "wecom", "kind": "wecom", "ok": True, "answer": "errcode 0"}],
    )
    assert send(site, "/v1/alerts/test", b"", **ADMIN)[0] == 200
    refused = send(site, "/v1/alerts/test", {"receiver": "nobody"}, **ADMIN)
    assert refused == (400, {"error": "there is no receiver 'nobody'"})
    assert alerts.calls == [("test", "wecom", None), ("test", None, None), ("test", "nobody", None)]


CHANGES = [
    ("POST", "/v1/silences"), ("POST", "/v1/alerts/test"), ("POST", "/v1/alertmanager"), ("DELETE", "/v1/silences/s1"),
]  # fmt: skip


@pytest.mark.parametrize(("method", "path"), CHANGES)
def test_where_no_token_is_configured_nothing_is_changed(alerts: FakeAlerts, method: str, path: str) -> None:
    with serving(alerts) as url:
        for headers in ({}, {"Host": "evil.example"}, {"Content_Type": "text/plain"}, ADMIN):
            assert send(url, path, {}, method, **headers)[0] in (401, 403)
    assert alerts.calls == []


def test_an_alertmanager_without_a_token_is_told_which_setting_it_needs(alerts: FakeAlerts) -> None:
    with serving(alerts) as url:
        status, answer = send(url, "/v1/alertmanager", {})
    assert (status, "set daemon.alerts.callback.token" in answer["error"]) == (401, True)


@pytest.mark.parametrize(("method", "path"), CHANGES)
def test_with_a_token_whoever_knows_it_may_from_anywhere(alerts: FakeAlerts, method: str, path: str) -> None:
    with serving(alerts, ApiTokens(daemon=TOKEN)) as url:
        assert send(url, path, {}, method)[0] == 401
        assert send(url, path, {}, method, Authorization="Bearer wrong")[0] == 401
        assert alerts.calls == []
        send(url, path, {"matchers": ["node=x"], "duration": "1h"}, method, Authorization=f"Bearer {TOKEN}", Host="x")
        assert len(alerts.calls) == 1


def test_an_alertmanager_has_a_token_of_its_own(alerts: FakeAlerts) -> None:
    with serving(alerts, ApiTokens(daemon=TOKEN, callback="am-token")) as url:
        assert send(url, "/v1/alertmanager", {}, Authorization=f"Bearer {TOKEN}")[0] == 401
        assert send(url, "/v1/alertmanager", {"a": 1}, Authorization="Bearer am-token") == (200, {"messages": 2})
    assert alerts.calls == [("call", b'{"a": 1}')]
    assert "am-token" not in repr(ApiTokens(daemon=TOKEN, callback="am-token"))


def test_too_much_at_once_is_refused(alerts: FakeAlerts, site: str) -> None:
    try:
        status, _ = send(site, "/v1/alertmanager", b"x" * (MAX_BODY_BYTES + 1), **ADMIN)
        assert status == 413
    except ConnectionError:
        pass  # the server closed the connection while the body was being sent
    assert alerts.calls == []


def test_an_alert_is_acknowledged_by_whoever_may_act_on_its_subject(alerts: FakeAlerts) -> None:
    with site_with_people({**ACCESS, "anonymous": "none"}, alerts=alerts) as url:
        path = "/v1/alerts/acknowledge/abc"
        for role, status in (("viewer", 403), ("user", 403), ("admin", 200)):
            answer = Client(url).post(path, {"comment": "fans"}, Authorization=f"Bearer {TOKENS[role]}")
            assert answer.status == status, role
        admin = Client(url, {"Authorization": f"Bearer {TOKENS['admin']}"})
        refused = admin.post("/v1/alerts/acknowledge/past", {})
        assert (refused.status, refused.json) == (400, {"error": "this alert is not firing"})
        assert admin.post(path, {"comment": "x" * 100_000}).status == 400
    assert [call for call in alerts.calls if call[0] == "acknowledge"] == [
        ("acknowledge", "abc", "a admin", "fans"), ("acknowledge", "past", "a admin", ""),
    ]  # fmt: skip


def test_a_user_acknowledges_own_alerts_but_only_with_the_secret_of_the_session(alerts: FakeAlerts) -> None:
    alerts.owner = "zhang"
    with site_with_people({**ACCESS, "anonymous": "none"}, alerts=alerts) as url:
        client, path = Client(url), "/v1/alerts/acknowledge/abc"
        client.sign_in("zhang.wei")
        assert client.post(path, {}).status == 403
        assert client.post(path, {}, X_CSRF_Token=client.csrf()).status == 200
    assert ("acknowledge", "abc", "zhang.wei", "") in alerts.calls


RESOLVED = [("en", ["resolved", "lasted 5 min", "What was reported:", "Notified: wecom"], "What to do"),
            ("zh", ["已恢复", "持续了 5 分钟", "当时的告警内容："], "处理建议")]  # fmt: skip


@pytest.mark.parametrize(("lang", "shows", "hides"), RESOLVED)
def test_an_alert_of_the_past_is_told_in_the_past(site: str, lang: str, shows: list[str], hides: str) -> None:
    status, _, body = get(f"{site}/alerts/past?lang={lang}")
    assert status == 200
    assert [each for each in shows if each not in body] == []
    assert hides not in body
    assert "data-s=" not in body.partition('id="alert"')[2].partition("</section>")[0]  # no age that grows


def test_the_timeline_is_part_of_the_page(site: str) -> None:
    body = get(f"{site}/alerts/abc")[2]
    assert [each for each in ("The alert fired (critical)", "Silenced by") if each not in body] == []


def test_the_link_to_an_alert_that_an_upgrade_merged(site: str, alerts: FakeAlerts) -> None:
    alerts.merged["old"] = "abc"
    status, _, body = get(f"{site}/alerts/old")
    assert (status, "Disk of" in body) == (200, True)
    assert get(f"{site}/alerts/older")[0] == 404
