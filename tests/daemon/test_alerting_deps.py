"""The daemon's alerting components without the daemon: digests, callbacks, silences, self-monitoring."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from monitor.alert.model import Phase
from monitor.config.root import Config
from monitor.daemon.alerting import AlertingInputs, AlertingService
from monitor.daemon.listen import linked_url
from monitor.facts.cluster import SourceView
from monitor.facts.findings import Finding, Severity
from monitor.facts.text import Text
from monitor.queries.alerts import AlertQueries, SilenceRequest
from tests.alert.alertmanager.test_callback import alert as called_alert
from tests.alert.alertmanager.test_callback import body as call_body
from tests.support import wait_until
from tests.support.clock import FakeClock
from tests.support.fake_agents import FakeAgent, answers
from tests.support.receivers.bots import WeComBot
from tests.support.receivers.http_server import LocalServer

START = 1_709_283_600.0  # 2024-03-01 09:00 UTC
WECOM = "https://qyapi.weixin.qq.com/cgi-bin/webhook/send?key=x"


def finding(node: str) -> Finding:
    return Finding(
        rule="disk-full", severity=Severity.CRITICAL, cause="images", labels={"node": node}, headline=Text(key="x")
    )


class Made:
    """Alerting with a fake clock; a new instance continues with the same state, as after a restart."""

    def __init__(self, state: Path, **alerts: Any) -> None:
        self._state, self._alerts = state, {"timezone": "UTC", "receivers": [WECOM]} | alerts
        self.clock = FakeClock(START)
        self.sources: tuple[SourceView, ...] = ()
        self.alerting = self._make()

    def _make(self) -> AlertingService:
        config = Config.model_validate({"daemon": {"alerts": self._alerts}}).daemon.alerts
        return AlertingService(
            config, str(self._state), "http://page", self._inputs, self.clock.time, monotonic=self.clock.monotonic
        )

    def _inputs(self) -> AlertingInputs:
        problem = self.alerting.store.problem
        return AlertingInputs(self.sources, state=(problem,) if problem is not None else ())

    def restart(self) -> None:
        self.alerting.store.close()
        self.alerting = self._make()

    def told(self) -> list[tuple[str, str]]:
        """Contents of the outbox: receiver and subject, newest last."""
        return [(each.receiver, each.group) for each in reversed(self.alerting.store.deliveries(99, 0.0))]

    def firing(self) -> dict[str, bool]:
        """Firing alerts, and whether each was confirmed by the last evaluation."""
        alerts = self.alerting.dispatcher.state.alerts.values()
        return {alert.finding.key: alert.finding.held for alert in alerts if alert.phase is Phase.FIRING}


@pytest.fixture
def close() -> Iterator[list[Made]]:
    made: list[Made] = []
    yield made
    for each in made:
        each.alerting.store.close()


def make(close: list[Made], state: Path, **alerts: Any) -> Made:
    close.append(Made(state, **alerts))
    return close[-1]


def test_a_summary_that_was_missed_is_made_up_once(tmp_path: Path, close: list[Made]) -> None:
    made = make(close, tmp_path, digest={"cron": "0 10 * * *"}, receivers=[WECOM, "console"])
    made.alerting._send_digest()
    made.clock.advance(1800.0)
    made.alerting._send_digest()
    assert made.told() == []
    made.restart()
    made.clock.advance(5 * 86400.0)
    made.restart()
    for _ in range(3):
        made.alerting._send_digest()
    assert made.told() == [("wecom", "digest"), ("console", "digest")]
    made.clock.advance(-86400.0)
    made.alerting._send_digest()
    assert len(made.told()) == 2


@pytest.mark.parametrize(
    ("name", "hours", "expect"),
    [
        ("the first look only notes the time", [0], 0),
        ("when it is time", [0, 1], 1),
        ("a clock that was a month ahead", [720, 0, 1], 1),
        ("no more often for that", [720, 0, 1, 2, 3], 1),
        ("ahead for a while, with a summary of then", [0, 720, 1.5, 25, 26], 2),
    ],
)
def test_a_clock_that_was_wrong_does_not_stop_summaries(
    tmp_path: Path, close: list[Made], name: str, hours: list[float], expect: int
) -> None:
    made = make(close, tmp_path, digest={"cron": "0 10 * * *"})  # an hour after START
    for hour in hours:
        made.clock.advance(START + hour * 3600 - made.clock.time())
        made.alerting._send_digest()
    assert made.told() == [("wecom", "digest")] * expect, name


def test_an_alertmanager_gets_no_summary(tmp_path: Path, close: list[Made]) -> None:
    manager = {"kind": "alertmanager", "url": "http://127.0.0.1:1"}
    made = make(close, tmp_path, digest={"cron": "* * * * *"}, receivers=[WECOM, manager])
    made.alerting._send_digest()
    made.clock.advance(61.0)
    made.alerting._send_digest()
    assert made.told() == [("wecom", "digest")]


def test_what_an_alertmanager_tells_is_told_once_also_across_a_restart(tmp_path: Path, close: list[Made]) -> None:
    made = make(close, tmp_path)
    firing, over = call_body(called_alert("a")), call_body(called_alert("a", "resolved"))
    assert [made.alerting.call(firing), made.alerting.call(firing)] == [1, 0]
    made.restart()
    assert [made.alerting.call(firing), made.alerting.call(over), made.alerting.call(over)] == [0, 1, 0]
    with pytest.raises(ValueError, match="webhook"):
        made.alerting.call(b"{}")


def test_that_nobody_looks_any_more_is_an_alert_and_ends_nothing(tmp_path: Path, close: list[Made]) -> None:
    made = make(close, tmp_path)
    made.alerting.update((finding("n1"),))
    made.clock.advance(59.0)
    made.alerting._check_evaluations()
    assert made.firing() == {"disk-full|node=n1": False}
    made.clock.advance(3600.0)
    made.alerting._check_evaluations()
    assert made.firing() == {"disk-full|node=n1": True, "monitor-blind|service=monitor/detection": False}
    made.alerting.update((finding("n1"),))
    assert made.firing()["disk-full|node=n1"] is False


@pytest.mark.parametrize("seconds", [3600.0, -3600.0])
def test_a_clock_that_is_set_does_not_look_as_if_nobody_looked(
    tmp_path: Path, close: list[Made], seconds: float
) -> None:
    made = make(close, tmp_path)
    made.clock.advance(61.0)
    made.alerting.update((finding("n1"),))
    made.clock.set(seconds)
    made.alerting._check_evaluations()
    assert made.firing() == {"disk-full|node=n1": False}
    made.clock.advance(61.0)
    made.alerting._check_evaluations()
    assert made.firing() == {"disk-full|node=n1": True, "monitor-blind|service=monitor/detection": False}


def test_what_cannot_be_seen_is_an_alert(tmp_path: Path, close: list[Made]) -> None:
    made = make(close, tmp_path)
    made.clock.advance(100.0)
    made.sources = (SourceView(name="pods", ok=False, why="forbidden", since=START),)
    made.alerting.update(())
    assert made.firing() == {"monitor-blind|service=monitor/api-server": False}


def test_that_nothing_can_be_written_is_an_alert(tmp_path: Path, close: list[Made]) -> None:
    (tmp_path / "state").write_text("")
    made = make(close, tmp_path / "state")
    made.clock.advance(100.0)
    made.alerting.update((finding("n1"),))
    assert made.firing().keys() == {"disk-full|node=n1", "monitor-blind|service=monitor/state"}


def test_a_silence_holds_at_once(tmp_path: Path, close: list[Made]) -> None:
    made = make(close, tmp_path)
    questions = AlertQueries(made.alerting, made.clock.time)
    silence = questions.silence(SilenceRequest(matchers=("node=n1",), duration="1h", author="li"))
    assert questions.silences() == (silence,)
    made.alerting.update((finding("n1"), finding("n2")))
    made.clock.advance(1.0)
    made.alerting.update((finding("n1"), finding("n2")))
    assert [subject.fingerprint for subject in made.alerting.dispatcher.still_firing("wecom")] == [
        each.fingerprint for each in questions.alerts("en") if each.labels == {"node": "n2"}
    ]
    assert [each.silenced_by for each in questions.alerts("en")].count(silence.id) == 1
    assert questions.unsilence(silence.id)
    assert not questions.unsilence(silence.id)


def test_what_happened_to_an_alert_is_known_when_it_is_over(tmp_path: Path, close: list[Made]) -> None:
    made = make(close, tmp_path)
    questions = AlertQueries(made.alerting, made.clock.time)

    def look(*nodes: str) -> None:
        for _ in range(2):
            made.alerting.update(tuple(finding(node) for node in nodes))
            made.clock.advance(100.0)

    look("n1")
    (one,) = questions.alerts("en")
    look("n1", one.fingerprint)  # a node that is called like another alert
    questions.acknowledge(one.fingerprint, "li", "on it")
    questions.silence(SilenceRequest(matchers=("node=n1",), duration="1h", author="li"))
    assert [entry.what for entry in questions.timeline(one.fingerprint)] == [
        "fired", "notified", "acknowledged", "silenced",
    ]  # fmt: skip
    assert questions.timeline("0" * 16) == ()
    assert questions.past("0" * 16, "en") is None
    look()
    past = questions.past(one.fingerprint, "en")
    assert past is not None
    assert (past.phase, past.told, past.labels) == (Phase.RESOLVED, ("wecom",), {"node": "n1"})
    with pytest.raises(ValueError, match="not firing"):
        questions.acknowledge(one.fingerprint, "li", "")


# With the real components


@contextmanager
def running(state: Path, **alerts: Any) -> Iterator[AlertingService]:
    config = Config.model_validate({"daemon": {"alerts": alerts}}).daemon.alerts
    alerting = AlertingService(config, str(state), "http://page", AlertingInputs)
    alerting.start()
    try:
        yield alerting
    finally:
        began = time.monotonic()
        alerting.stop()
        assert time.monotonic() - began < 30


def test_that_a_receiver_refuses_is_told_to_another(tmp_path: Path) -> None:
    with WeComBot() as bot, LocalServer() as other:
        bot.force = 93000
        receivers = [{"kind": "wecom", "url": bot.url}, {"url": f"{other.base}/hook"}]
        with running(tmp_path, receivers=receivers) as alerting:
            alerting.update((finding("n1"),))

            def told() -> set[str]:
                return {
                    each["labels"]["alertname"] for asked in other.asked for each in json.loads(asked.body)["alerts"]
                }

            wait_until(lambda: told() == {"DiskFull", "ReceiverFailing"}, 10, "both are told")
        assert len(bot.asked) == 1


def test_the_heart_beats_while_somebody_looks(tmp_path: Path) -> None:
    with FakeAgent(answers(b"OK")) as server:
        heartbeat = {"url": f"http://{server.target}/ping", "interval": "200ms"}
        with running(tmp_path, receivers=["console"], heartbeat=heartbeat) as alerting:
            time.sleep(0.3)
            assert server.paths == []
            alerting.update(())
            wait_until(lambda: server.paths, 5, "it beats")


@pytest.mark.parametrize(("host", "expect"), [("127.0.0.1", "127.0.0.1"), ("0.0.0.0", socket.gethostname())])
def test_links_lead_to_where_others_reach_the_page(host: str, expect: str) -> None:
    with socket.create_server((host, 0)) as listening:
        assert linked_url(listening) == f"http://{expect}:{listening.getsockname()[1]}"
