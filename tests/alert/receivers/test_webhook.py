from __future__ import annotations

import hashlib
import hmac

from monitor.alert.model import NotificationReason, Phase, Summary
from monitor.alert.receivers.base import RateLimit
from monitor.facts.findings import Severity
from tests.alert.receivers.batches import batch, finding, notification, receiver, refusal, subject
from tests.support.receivers.http_server import LocalServer, says

PAGE = "https://warden.example"
PAYLOAD = {
    "version", "groupKey", "truncatedAlerts", "status", "receiver", "groupLabels", "commonLabels", "commonAnnotations",
    "externalURL", "alerts",
}  # fmt: skip
ALERT = {"status", "labels", "annotations", "startsAt", "endsAt", "generatorURL", "fingerprint"}


def test_the_fields_of_alertmanagers_version_4_and_no_others() -> None:
    with LocalServer() as server:
        to = receiver("webhook", server.base, page=PAGE, cluster="prod")
        assert to.deliver(batch(notification(subject(finding(user="zhang"))))) == "200"
    body = server.asked[0].json
    assert body.keys() == PAYLOAD
    assert [alert.keys() for alert in body["alerts"]] == [ALERT]


def test_what_they_say() -> None:
    firing = subject(finding("/data"))
    over = subject(finding("/scratch", severity=Severity.WARNING), Phase.RESOLVED)
    with LocalServer() as server:
        receiver("webhook", server.base, page=PAGE, cluster="prod").deliver(batch(notification(firing, over)))
    body = server.asked[0].json
    first, second = body["alerts"]
    assert (body["version"], body["status"], body["receiver"]) == ("4", "firing", "ops")
    assert body["groupKey"] == "DiskFull|cause=images"
    assert body["groupLabels"] == {"alertname": "DiskFull", "cause": "images"}
    assert body["commonLabels"] == {"alertname": "DiskFull", "cause": "images", "cluster": "prod", "node": "gpu1"}
    assert body["externalURL"] == PAGE
    assert first["labels"]["severity"] == "critical"
    assert (first["status"], first["startsAt"]) == ("firing", "2023-11-14T22:13:20.000Z")
    assert first["endsAt"] == "0001-01-01T00:00:00Z"
    assert first["fingerprint"] == firing.fingerprint
    assert first["generatorURL"] == f"{PAGE}/alerts/{firing.fingerprint}"
    assert first["annotations"]["summary"].startswith("Disk /data of gpu1 is 97% full")
    assert "can be removed safely" in first["annotations"]["advice"]
    assert (second["status"], second["endsAt"]) == ("resolved", "2023-11-14T22:23:20.000Z")


def test_all_over_is_resolved() -> None:
    with LocalServer() as server:
        over = notification(subject(phase=Phase.RESOLVED), reason=NotificationReason.RESOLVED)
        receiver("webhook", server.base).deliver(batch(over))
    assert server.asked[0].json["status"] == "resolved"
    assert server.asked[0].json["externalURL"] == ""


def test_one_request_for_each_group_and_one_id_for_all() -> None:
    with LocalServer() as server:
        several = [notification(subject(finding(mount))) for mount in ("/a", "/b", "/c")]
        to = receiver("webhook", server.base)
        assert to.capacity(several) == 3
        assert to.deliver(batch(*several)) == "200 200 200"
    assert {asked.headers["x-gpuwarden-id"] for asked in server.asked} == {"batch-1"}
    mounts = [asked.json["alerts"][0]["labels"]["mount"] for asked in server.asked]
    assert mounts == ["/a", "/b", "/c"]


def test_signed_with_the_time_and_a_token_is_shown() -> None:
    with LocalServer() as server:
        to = receiver("webhook", server.base, secret="of-ours-alone", token="bearer-of-ours")
        to.deliver(batch(at=1_700_000_000.9))
    asked = server.asked[0]
    sealed = b"1700000000." + asked.body
    assert asked.headers["x-gpuwarden-timestamp"] == "1700000000"
    expected = hmac.new(b"of-ours-alone", sealed, hashlib.sha256).hexdigest()
    assert asked.headers["x-gpuwarden-signature"] == f"sha256={expected}"
    assert asked.headers["authorization"] == "Bearer bearer-of-ours"


def test_neither_signature_nor_token_where_none_is_configured() -> None:
    with LocalServer() as server:
        receiver("webhook", server.base).deliver(batch())
    assert not {"x-gpuwarden-signature", "x-gpuwarden-timestamp", "authorization"} & server.asked[0].headers.keys()


def test_a_digest_has_no_alerts_but_something_to_say() -> None:
    digest = notification(summary=Summary(since=0.0, until=86_400.0, fired={"disk-full": 3}, still_firing=1))
    with LocalServer() as server:
        receiver("webhook", server.base).deliver(batch(notification(), digest))
    said = server.asked[1].json["commonAnnotations"]
    assert said["summary"]
    assert "3" in said["description"]


def test_a_test_message_says_so() -> None:
    with LocalServer() as server:
        receiver("webhook", server.base).deliver(batch(notification(sample=True)))
    assert server.asked[0].json["commonAnnotations"]["sample"] == "true"


def test_the_answer_is_the_status_alone() -> None:
    with LocalServer(says(202, b"<html>thank you</html>")) as server:
        assert receiver("webhook", server.base).deliver(batch()) == "202"


def test_a_failure_in_the_middle_is_a_failure_of_all() -> None:
    with LocalServer() as server:
        server.behave = lambda handler: handler.say(200 if len(server.asked) < 2 else 503)
        error = refusal(receiver("webhook", server.base), batch(notification(), notification(), notification()))
    assert error.retryable
    assert len(server.asked) == 2


def test_a_pace_of_ones_own() -> None:
    assert receiver("webhook", pace=RateLimit(count=5, window=1.0)).pace.count == 5
