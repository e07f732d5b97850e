"""Notifications of replicas, and responses of one that does not lead: each alert is relayed once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from monitor.config.root import Config
from monitor.daemon.alerting import AlertingInputs, AlertingService
from monitor.leader.elector import LeaseElector, LeaseState, NotLeaderError
from monitor.queries.alerts import AlertQueries, SilenceRequest
from monitor.sim.simulation import Simulation
from monitor.web.context import PageData
from tests.alert.alertmanager.test_callback import alert, body
from tests.cleanup.running import SOON, simulated
from tests.leader.test_elector import replica, two
from tests.support import wait_until
from tests.support.local_token import AS_LOCAL
from tests.web.cluster import Client, site
from tests.web.test_alerts_api import FakeAlerts as Alerts
from tests.web.test_cleanup_api import FakeCleanup as Cleanup

ALERTMANAGER = {"kind": "alertmanager", "url": "http://127.0.0.1:9"}
RECEIVERS = [ALERTMANAGER, {"name": "ops", "kind": "console"}]
DAY = 86400.0


@pytest.fixture
def story() -> Iterator[Simulation]:
    with simulated() as made:
        yield made


class ManualClock:
    def __init__(self) -> None:
        self.now = 1_763_260_000.0

    def time(self) -> float:
        return self.now


@contextmanager
def alerting(
    state: Path, leading: LeaseElector, clock: ManualClock | None = None, **alerts: Any
) -> Iterator[AlertingService]:
    """Alerting of a replica. It is not started, so nothing is sent."""
    config = Config.model_validate({"daemon": {"alerts": {"receivers": RECEIVERS, **alerts}}}).daemon.alerts
    made = AlertingService(config, str(state), "http://page", AlertingInputs, (clock or ManualClock()).time, leading)
    try:
        yield made
    finally:
        made.store.close()


def test_what_is_found_goes_to_alertmanager_alone(story: Simulation, tmp_path: Path) -> None:
    with alerting(tmp_path, replica(story, tmp_path / "1")) as made:
        assert [route.receivers for route in made.policy().routes] == [("alertmanager",)]
        with pytest.raises(ValueError, match="silence it in Alertmanager"):
            AlertQueries(made).silence(SilenceRequest(matchers=("severity=info",), duration="1h"))
        with pytest.raises(ValueError, match="silence it in Alertmanager"):
            AlertQueries(made).acknowledge("f", "li", "")


def test_an_alert_is_told_once_whichever_replica_is_called_and_its_end_too(story: Simulation, tmp_path: Path) -> None:
    clock = ManualClock()
    with (
        two(story, tmp_path) as (first, second),
        alerting(tmp_path / "1", first, clock) as one,
        alerting(tmp_path / "2", second, clock) as other,
    ):
        assert one.call(body(alert("a"))) == 1
        assert one.call(body(alert("a"))) == 0
        with pytest.raises(NotLeaderError):
            other.call(body(alert("a")))  # Alertmanager retries until it reaches the leader
        first.stop()
        wait_until(second.holds, SOON, "the second takes over")
        with pytest.raises(NotLeaderError):
            one.call(body(alert("a")))
        clock.now += 20
        assert other.call(body(alert("a"))) == 0, "the first replica has relayed it"
        assert other.call(body(alert("a", "resolved"))) == 1
        assert other.call(body(alert("a", "resolved"))) == 0
        assert one.store.deliveries(9, 0.0)[0].receiver == "ops"


def test_a_summary_is_sent_by_one(story: Simulation, tmp_path: Path) -> None:
    clock, digest = ManualClock(), {"cron": "0 9 * * *", "timezone": "UTC"}
    with (
        two(story, tmp_path) as (first, second),
        alerting(tmp_path / "1", first, clock, digest=digest) as one,
        alerting(tmp_path / "2", second, clock, digest=digest) as other,
    ):
        for made in (one, other):
            made._send_digest()  # the period starts now
        clock.now += DAY
        other._send_digest()
        one._send_digest()
        assert [len(made.store.deliveries(9, 0.0)) for made in (one, other)] == [1, 0]
        first.stop()
        wait_until(second.holds, SOON, "the second takes over")
        other._send_digest()
        assert other.store.deliveries(9, 0.0) == ()
        clock.now += DAY
        other._send_digest()
        assert len(other.store.deliveries(9, 0.0)) == 1


class Refusing:
    """Actions of a replica that does not lead."""

    def call(self, _body: bytes) -> int:
        raise NotLeaderError("ops/gpuwarden", "gpuwarden-1_ab12")

    def run(self, _policy: str, _node: str | None, _by: str) -> tuple[str, ...]:
        raise NotLeaderError("ops/gpuwarden", "gpuwarden-1_ab12")


class RefusingAlerts(Refusing, Alerts):
    pass


class RefusingCleanup(Refusing, Cleanup):
    pass


def test_who_does_not_act_says_who_does() -> None:
    state = LeaseState(holds=False, identity="gpuwarden-2_cd34", holder="gpuwarden-1_ab12", lease="ops/gpuwarden")
    parts = PageData(lease=lambda: state)
    with site({}, alerts=RefusingAlerts(), cleanup=RefusingCleanup(), page_data=parts) as url:
        client = Client(url, AS_LOCAL)
        run = client.post("/v1/cleanup/run", {"policy": "images"})
        assert run.status == 409
        assert "gpuwarden-1_ab12 holds the lease ops/gpuwarden" in run.json["error"]
        zh = client.post("/v1/cleanup/run", {"policy": "images"}, Accept_Language="zh-CN,zh")
        assert "由 gpuwarden-1_ab12 持有" in zh.json["error"]
        called = client.post("/v1/alertmanager", {})
        assert called.status == 503, "so that Alertmanager retries"
        assert {name.lower(): value for name, value in called.headers.items()}["connection"] == "close"
        assert client.get("/v1/lease").json["holder"] == "gpuwarden-1_ab12"
        assert "the leader is gpuwarden-1_ab12" in client.get("/nodes").body
        assert "操作由 gpuwarden-1_ab12 执行" in client.get("/nodes?lang=zh").body


def test_without_a_lease_this_one_acts_and_pages_say_nothing_of_it() -> None:
    with site({}) as url:
        assert Client(url).get("/v1/lease").json == {"holds": True}
        assert 'id="lease"' not in Client(url).get("/nodes").body
