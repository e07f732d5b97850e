"""Against Debian's Alertmanager: it accepts, recognises and ends our alerts, and its silences are read."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, cast

import msgspec
import pytest

from monitor.alert.alertmanager.silences import AlertmanagerSilences
from monitor.alert.model import NotificationReason, NotificationSubject, Phase, labels_of
from monitor.alert.receivers.alertmanager import Alertmanager
from monitor.alert.silences import active_silences, matching_silence
from monitor.base.endpoint import Endpoint
from monitor.facts.findings import Severity
from tests.alert.receivers.batches import batch, finding, notification, receiver, refusal, subject
from tests.support import wait_until
from tests.support.receivers.http_server import LocalServer, says
from tests.support.receivers.real_alertmanager import RealAlertmanager, real_alertmanager


@dataclass(frozen=True)
class Lab:
    alertmanager: RealAlertmanager
    hook: LocalServer  # its webhook

    def called(self, mount: str) -> list[tuple[str, dict[str, Any]]]:
        """Status and content of each webhook call about an alert."""
        told = [alert for asked in self.hook.asked for alert in asked.json["alerts"]]
        return [(alert["status"], alert) for alert in told if alert["labels"].get("mount") == mount]

    def firing(self, mount: str) -> list[dict[str, Any]]:
        return [alert for alert in self.alertmanager.alerts() if alert["labels"].get("mount") == mount]


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with LocalServer() as hook, real_alertmanager(tmp_path_factory.mktemp("am"), f"{hook.base}/call") as running:
        yield Lab(running, hook)


def ours(lab: Lab, **more: Any) -> Alertmanager:
    given = {"cluster": "prod", "page": "https://warden.example"} | more
    return cast("Alertmanager", receiver("alertmanager", lab.alertmanager.url, **given))


def since_a_minute(mount: str, **more: Any) -> NotificationSubject:
    return subject(finding(mount), **({"since": time.time() - 60} | more))


def over(mount: str) -> NotificationSubject:
    return since_a_minute(mount, phase=Phase.RESOLVED, resolved_at=time.time())


def seconds_from_now(text: str) -> float:
    return datetime.fromisoformat(text).timestamp() - time.time()


def test_it_receives_and_calls_its_webhook(lab: Lab) -> None:
    assert ours(lab).deliver(batch(notification(since_a_minute("/a")))) == "200"
    (alert,) = lab.firing("/a")
    assert alert["labels"] == labels_of(finding("/a"), "prod")
    assert alert["labels"]["alertname"] == "DiskFull"
    assert alert["annotations"]["summary"].startswith("Disk /a of gpu1 is 97% full")
    assert alert["generatorURL"].startswith("https://warden.example/alerts/")
    assert -120 < seconds_from_now(alert["startsAt"]) < -55
    assert 200 < seconds_from_now(alert["endsAt"]) < 305
    wait_until(lambda: lab.called("/a"), 30, "it has called")
    assert lab.called("/a")[0][0] == "firing"


def test_what_is_sent_again_is_the_same_alert(lab: Lab) -> None:
    to = ours(lab)
    for _ in range(3):
        to.deliver(batch(notification(since_a_minute("/twice", since=1_700_000_000.0))))
    to.resend([since_a_minute("/twice", since=1_700_000_000.0)], time.time())
    assert len(lab.firing("/twice")) == 1
    wait_until(lambda: lab.called("/twice"), 30, "it has called")
    time.sleep(1.5)  # longer than its group interval
    assert [status for status, _ in lab.called("/twice")] == ["firing"]


def test_what_is_over_is_over_there_too(lab: Lab) -> None:
    to = ours(lab)
    to.deliver(batch(notification(since_a_minute("/over"))))
    wait_until(lambda: lab.called("/over"), 30, "it has called")
    to.deliver(batch(notification(over("/over"), reason=NotificationReason.RESOLVED)))
    assert lab.firing("/over") == []
    wait_until(lambda: lab.called("/over")[-1][0] == "resolved", 30, "it has called again")


def test_the_last_word_counts_when_several_are_merged(lab: Lab) -> None:
    ours(lab).deliver(batch(notification(since_a_minute("/merged")), notification(over("/merged"))))
    assert lab.firing("/merged") == []


def test_it_keeps_what_is_sent_again_and_ends_what_is_not(lab: Lab) -> None:
    to = ours(lab)
    to.resend_every = 1.0  # so that five intervals pass soon
    kept, left = since_a_minute("/kept"), since_a_minute("/left")
    to.deliver(batch(notification(kept, left)))
    assert (len(lab.firing("/kept")), len(lab.firing("/left"))) == (1, 1)

    def resent() -> bool:
        to.resend([kept], time.time())
        return not lab.firing("/left")

    wait_until(resent, 30, "what is not sent again is over")
    assert len(lab.firing("/kept")) == 1


@pytest.mark.parametrize("again", ["delivered", "resent"])
def test_what_becomes_worse_is_one_alert(lab: Lab, again: str) -> None:
    """The severity is a label, so for Alertmanager it is another alert: the previous one must be ended."""
    to, mount, since = ours(lab), f"/worse/{again}", time.time() - 60
    mild, worse = (subject(finding(mount, each), since=since) for each in (Severity.WARNING, Severity.CRITICAL))
    to.deliver(batch(notification(mild)))
    if again == "delivered":
        to.deliver(batch(notification(worse, reason=NotificationReason.WORSE)))
    else:
        to.resend([worse], time.time())
    assert [alert["labels"]["severity"] for alert in lab.firing(mount)] == ["critical"]
    to.resend([worse], time.time())
    to.deliver(batch(notification(over(mount), reason=NotificationReason.RESOLVED)))
    assert lab.firing(mount) == []


def test_what_is_over_is_not_sent_again(lab: Lab) -> None:
    ours(lab).resend([over("/never-seen")], time.time())
    ours(lab).resend([], time.time())
    assert lab.firing("/never-seen") == []


def test_a_thousand_at_once(lab: Lab) -> None:
    many = [since_a_minute(f"/many/{number}") for number in range(1000)]
    assert ours(lab).deliver(batch(notification(*many))) == "200 200"
    found = [each for each in lab.alertmanager.alerts() if each["labels"]["mount"].startswith("/many/")]
    assert len(found) == 1000


def test_names_that_users_choose(lab: Lab) -> None:
    odd = '/数据 "a" \\ {b=~"c"} \ud800'
    ours(lab).deliver(batch(notification(since_a_minute(odd))))
    assert len(lab.firing(odd.replace("\ud800", "?"))) == 1


def test_an_alert_without_length(lab: Lab) -> None:
    now = time.time()
    ours(lab).deliver(batch(notification(subject(finding("/short"), Phase.RESOLVED, since=now, resolved_at=now - 5))))
    assert lab.firing("/short") == []


def test_a_digest_is_no_alert(lab: Lab) -> None:
    digest = msgspec.structs.replace(notification(severity=Severity.INFO), subjects=())
    assert ours(lab).deliver(batch(digest)) == "nothing to send: a digest has no alerts"


def test_what_it_refuses_is_not_tried_again(lab: Lab) -> None:
    error = refusal(receiver("alertmanager", f"{lab.alertmanager.url}/wrong-prefix"))
    assert (error.retryable, "404 Not Found" in str(error)) == (False, True)


def test_its_silences_are_read_and_respected(lab: Lab) -> None:
    silences = AlertmanagerSilences(Endpoint(lab.alertmanager.url))
    silences.refresh()
    assert not silences.silences
    now = time.time()
    made = lab.alertmanager.post(
        "/api/v2/silences",
        {
            "matchers": [
                {"name": "node", "value": "gpu[0-9]", "isRegex": True, "isEqual": True},
                {"name": "mount", "value": "/data", "isRegex": False, "isEqual": True},
            ],
            "startsAt": datetime.fromtimestamp(now - 1, UTC).isoformat(),
            "endsAt": datetime.fromtimestamp(now + 3600, UTC).isoformat(),
            "createdBy": "li",
            "comment": "new disks come",
        },
    )
    silences.refresh()
    (silence,) = silences.silences
    assert (silence.id, silence.author) == (made["silenceID"], "li")
    assert (
        matching_silence(labels_of(finding("/data"), "prod"), active_silences(silences.silences, time.time()))
        == silence
    )
    assert (
        matching_silence(labels_of(finding("/scratch"), "prod"), active_silences(silences.silences, time.time()))
        is None
    )


@pytest.mark.parametrize(
    ("base", "path"),
    [
        ("", "/api/v2/alerts"),
        ("/", "/api/v2/alerts"),
        ("/am/", "/am/api/v2/alerts"),
        ("/api/v2/alerts", "/api/v2/alerts"),
        ("/am/api/v2", "/am/api/v2/alerts"),
    ],
)
def test_its_address_may_be_written_in_several_ways(base: str, path: str) -> None:
    with LocalServer(says(200)) as server:
        receiver("alertmanager", server.base + base, token="of-ours").deliver(batch())
    assert (server.asked[0].path, server.asked[0].headers["authorization"]) == (path, "Bearer of-ours")
