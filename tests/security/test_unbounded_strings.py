"""Strings without end: from a lying agent, from tenants in Kubernetes objects, from Alertmanager and registries."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from monitor.alert.alertmanager import silences
from monitor.alert.alertmanager.callback import (
    CallbackPayload,
    NotificationLog,
    OwnAlerts,
    process_callback,
    read_payload,
)
from monitor.alert.model import Notification
from monitor.alert.receivers.payload import MAX_WEBHOOK_BYTES
from monitor.alert.store import FILE, AlertStore
from monitor.base.state_size import directory_bytes
from monitor.base.text import ELLIPSIS, MAX_TEXT_CHARS, shortened_prefix
from monitor.cleanup.execute import harbor
from monitor.cleanup.plan.images import plan_images
from monitor.cleanup.plan.references import image_references
from monitor.cleanup.policy import ImagePolicy
from monitor.cluster.agents.client import AgentError
from monitor.cluster.agents.snapshot import decode_snapshot
from monitor.daemon.state_keeper import StateKeeper
from monitor.detect.base import NoLimits, Rule, RuleResult, SubjectKind
from monitor.detect.bounds import MAX_FINDINGS_PER_NODE, TOO_MANY
from monitor.detect.engine import detect
from monitor.detect.history import DetectionHistory
from monitor.detect.meta.monitor import MonitorState, with_monitor_findings
from monitor.detect.rules import RULES
from monitor.facts.actions import ActionFact, ActionRequest
from monitor.facts.datasets import PurgeFact, ScanFact, TrashFact
from monitor.facts.findings import Finding, Scope, Severity
from monitor.facts.node import NodeSnapshot
from monitor.facts.storage import DiskFact
from monitor.facts.text import Text
from monitor.kube.decode import devices, kueue, node, pod_wire, stream, volcano
from monitor.kube.decode import volume as wire_volume
from monitor.kube.decode.pod import PodFieldFilter
from monitor.probes import http as http_probe
from monitor.probes.runner import ServiceProbes, ServiceTarget
from monitor.queries.alerts import SilenceRequest
from tests.alert.receivers.batches import batch, finding, notification, receiver, subject
from tests.cleanup.builders import NO_REFERENCES, NOW, image, kept, names, snapshot
from tests.cluster.builders import agent
from tests.cluster.builders import node as node_fact
from tests.detect.builders_gpu import rule_context
from tests.security import lies
from tests.security.long_strings import LONG, filled, longest, unbounded, wire_types
from tests.support import free_port, wait_until
from tests.support.command import command, get, quiet_environment
from tests.support.fake_agents import FakeAgent, answers
from tests.support.living_api import LivingApi, kube_node, kube_pod
from tests.support.receivers.http_server import LocalServer, says

MIB = 1 << 20
MAX_STATE = 32 * MIB  # of a daemon with one attacker
MAX_RSS = 400 * MIB  # of the same; an idle one takes 100 MiB
MANY = 5_000
BOT_ACCEPTS = says(200, {"errcode": 0, "errmsg": "ok"})

# Cut where they are used: nearly all of them are dropped, and honest ones may be long.
CUT_LATER = {
    "WireMeta.annotations.0.key", "WireMeta.annotations.0.value", "WireEnv.value.0", "WireCondition.message.0",
    "WireState.message.0", "WireStatus.message.0", "WireEvent.message.0",
}  # fmt: skip
WIRE = (
    NodeSnapshot, ActionFact, ActionRequest, ScanFact, TrashFact, PurgeFact, CallbackPayload, silences._ApiSilence,
    harbor._Project, harbor._RetentionRun, harbor._RetentionTask, harbor._GcRun, http_probe._Health,
)  # fmt: skip


# Decoding


@pytest.mark.parametrize("form", WIRE, ids=lambda form: form.__name__)
def test_every_string_from_outside_has_a_limit(form: Any) -> None:
    assert unbounded(form) == set()


def test_every_string_of_kubernetes_has_a_limit() -> None:
    forms = list(wire_types())
    assert len(forms) > 40
    assert {path for form in forms for path in unbounded(form)} <= CUT_LATER
    assert unbounded(SilenceRequest) == {"SilenceRequest.author", "SilenceRequest.comment"}, "those are cut"


def test_long_strings_everywhere_in_a_snapshot() -> None:
    told = msgspec.json.encode(filled(NodeSnapshot))
    assert len(told) > 20 * len(LONG)
    decoded = decode_snapshot(told)
    assert longest(decoded) == MAX_TEXT_CHARS
    assert decoded.mounts is not None
    assert ELLIPSIS in decoded.mounts[0].path
    assert shortened_prefix(decoded.mounts[0].path) is not None


def test_a_long_identifier_is_never_cut_into_another() -> None:
    told = lies.truth()
    told["containers"][0]["id"] += "0" * 300
    with pytest.raises(AgentError, match="length <= 256"):
        decode_snapshot(json.dumps(told).encode())
    named = [kube_pod("a" * 300), kube_pod("b"), kube_pod("c", node="n" * 300)]
    page = stream.decode_pod_list(msgspec.json.encode({"items": named}))
    assert ([pod.name for pod in page.items], page.skipped) == (["b"], 2)


OBJECTS: dict[str, tuple[Any, Any]] = {
    "pods": (stream.pods(PodFieldFilter(frozenset({LONG, "a"}), frozenset({"a"}))), pod_wire.WirePod),
    "nodes": (stream.NODES, node.WireNode),
    "events": (stream.EVENTS, node.WireEvent),
    "quotas": (stream.QUOTAS, node.WireQuota),
    "owners": (stream.OWNERS, node.WireObject),
    "volcano queues": (stream.VOLCANO_QUEUES, volcano.WireVolcanoQueue),
    "pod groups": (stream.POD_GROUPS, volcano.WirePodGroup),
    "kueue queues": (stream.KUEUE_QUEUES, kueue.WireKueueQueue),
    "workloads": (stream.WORKLOADS, kueue.WireWorkload),
    "resource claims": (stream.RESOURCE_CLAIMS, devices.WireClaim),
    "resource slices": (stream.RESOURCE_SLICES, devices.WireSlice),
    "device classes": (stream.DEVICE_CLASSES, devices.WireClass),
}


def undecoded() -> dict[str, Any]:
    """Parts of a pod that are decoded later, with long strings."""
    source = filled(wire_volume.WireSource)
    return {
        "env": [{"name": "a", "value": LONG}],
        "resources": filled(pod_wire.WireResources),
        "overhead": {LONG: "1"},
        "tolerations": filled(list[pod_wire.WireToleration]),
        "affinity": filled(pod_wire.WireAffinity),
        "volumes": [{"name": LONG, kind: source} for kind in ("nfs", "cephfs", "hostPath", "projected")],
    }


@pytest.mark.parametrize("kind", OBJECTS)
def test_long_strings_everywhere_in_an_object(kind: str) -> None:
    decoder, form = OBJECTS[kind]
    item = filled(form, undecoded())
    item["metadata"]["annotations"] |= {"a": LONG, "owner": LONG}
    if kind == "pods":
        item["spec"]["volumes"] = undecoded()["volumes"]
    page = decoder.page(msgspec.json.encode({"items": [item]}))
    assert (page.skipped, page.problem) == (0, None)
    assert 0 < longest(page.items[0]) <= MAX_TEXT_CHARS
    event = decoder.line(msgspec.json.encode({"type": "ADDED", "object": item}))
    assert event.fact == page.items[0]


def test_annotations_and_variables_that_are_kept_are_cut() -> None:
    """Nothing else of the pod is too long: most pods with long annotations are honest, and decoded once."""
    item = kube_pod("p", annotations={"a": LONG, "b": LONG})
    item["spec"]["containers"][0]["env"] = [{"name": "a", "value": LONG}]
    item["status"]["message"] = LONG
    page = OBJECTS["pods"][0].page(msgspec.json.encode({"items": [item]}))
    (pod,) = page.items
    assert (list(pod.annotations), list(pod.env)) == (["a"], ["a"])
    assert 0 < longest(pod) <= MAX_TEXT_CHARS


def test_caches_keep_no_large_parts_of_objects() -> None:
    """Resources of different pods with thousands of names each would fill the caches of the decoder."""
    measured = subprocess.run(
        [sys.executable, "-m", "tests.security.decoder_memory"],
        capture_output=True, text=True, check=True, env={**os.environ, "PYTHONPATH": os.getcwd()},
    )  # fmt: skip
    given_bytes, kept_bytes = map(int, measured.stdout.split())
    assert kept_bytes < given_bytes / 10


def _peak_rss(pid: int | str = "self") -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise AssertionError("no VmHWM")


# Images


def test_an_image_whose_name_was_cut_is_never_removed() -> None:
    long_name = "harbor.lab/team/" + "x" * 10_000 + ":1"
    pod = filled_pod("harbor.lab/base/torch:" + "9" * 10_000)
    (long_reference,) = stream.decode_pod_list(msgspec.json.encode({"items": [pod]})).items
    references = image_references("n1", [long_reference], [])
    cached = decode_snapshot(
        msgspec.json.encode(
            snapshot(
                image(long_name),
                image("harbor.lab/base/torch:2"),
                image("harbor.lab/other/torch:2"),
            )
        )
    )
    plan = plan_images(ImagePolicy(name="i"), cached, references, NOW)
    assert names(plan) == ["harbor.lab/other/torch:2"]
    assert sorted(kept(plan).values()) == ["needed", "unknown"]
    unreferenced = plan_images(ImagePolicy(name="i"), cached, NO_REFERENCES, NOW)
    assert names(unreferenced) == ["harbor.lab/base/torch:2", "harbor.lab/other/torch:2"]


def filled_pod(image_name: str) -> dict[str, Any]:
    item = kube_pod("p", node="n1")
    item["spec"]["containers"][0]["image"] = image_name
    return item


# Alertmanager, registries, probes


def callback(alerts: int) -> bytes:
    labels = dict.fromkeys(("alertname", "severity", "cause", "node", "pod", "user", "instance", LONG), LONG)
    annotations = dict.fromkeys(("summary", "description", "advice", "runbook_url", LONG), LONG)
    one = {"status": "firing", "labels": labels, "startsAt": "2026-01-01T00:00:00Z", "annotations": annotations}
    calls = [one | {"fingerprint": f"{number:016x}"} for number in range(alerts)]
    return json.dumps({"version": "4", "groupKey": LONG, "alerts": calls}).encode()


def test_a_callback_with_huge_texts_is_stored_and_sent_in_bounds(tmp_path: Path) -> None:
    body = callback(24)
    assert len(body) > 6 * MIB
    result = process_callback(read_payload(body), ["r"], NotificationLog(), OwnAlerts(), NOW)
    assert longest(result.notifications) <= 1000
    assert len(msgspec.json.encode(result.log)) < 64 * 1024
    store = AlertStore(str(tmp_path / FILE))
    store.send(result.notifications, {})
    store.close()
    assert directory_bytes(str(tmp_path)) < MIB
    assert len(delivered("webhook", *result.notifications)[0]) < MIB


def test_a_silence_with_a_matcher_that_was_cut_is_ignored() -> None:
    one = {
        "id": "1", "status": {"state": "active"}, "startsAt": "2026-01-01T00:00:00Z", "endsAt": "2036-01-01T00:00:00Z",
        "matchers": [{"name": "node", "value": "n1", "isRegex": False}], "comment": LONG, "createdBy": LONG,
    }  # fmt: skip
    cut = one | {"id": "2", "matchers": [{"name": "node", "value": LONG, "isRegex": False}]}
    (silence,) = silences.read_silences(json.dumps([one, cut]).encode())
    assert silence.id == "1"
    assert longest(silence) <= MAX_TEXT_CHARS


def test_what_a_registry_says_is_short(tmp_path: Path) -> None:
    components = [{"name": LONG, "status": LONG, "error": LONG}] * 3
    with LocalServer(says(200, {"status": LONG, "components": components})) as server:
        probes = ServiceProbes([ServiceTarget(name="r", kind="harbor", url=server.base)])
        probes.start()
        try:
            wait_until(probes.facts, 15, "it was probed")
            (fact,) = probes.facts()
        finally:
            probes.stop()
    assert fact.cause == "component"
    assert longest(fact) <= 500
    assert (fact.detail or "").endswith(ELLIPSIS)
    assert (fact.component or "").endswith(ELLIPSIS)


# Findings, messages and files


def test_one_rule_reports_so_many_findings_of_a_node_and_no_more() -> None:
    disks = tuple(
        DiskFact(mount=f"/m{number}", device=f"/dev/{number}", fstype="ext4", roles=("data",), size_bytes=100,
                 used_bytes=100, available_bytes=0)
        for number in range(3 * MAX_FINDINGS_PER_NODE)
    )  # fmt: skip
    context = rule_context(agent(disk=disks), nodes=(node_fact("n1"),))
    found = detect(RULES, {}, context, DetectionHistory()).findings
    full = [each for each in found if each.rule == "disk-full" and each.cause != TOO_MANY]
    assert len(full) == MAX_FINDINGS_PER_NODE
    (flood,) = [each for each in found if each.rule == "disk-full" and each.cause == TOO_MANY]
    assert flood.headline.values["count"] == 2 * MAX_FINDINGS_PER_NODE


def test_a_finding_has_limits_whatever_a_rule_puts_into_it() -> None:
    """And what a cut finding explains is still recognised."""
    words = Text(key="external", values={"text": LONG, "count": 5})
    cause = Finding(
        rule="x", severity=Severity.WARNING, cause=LONG, labels={"node": LONG}, headline=words, evidence=(words,) * 100,
        advice=(words,) * 100, explains=(Scope(labels={"pod": LONG}),), raw=LONG,
    )  # fmt: skip
    symptom = Finding(rule="x", severity=Severity.WARNING, cause="y", labels={"pod": LONG}, headline=words)
    rule = Rule("x", NoLimits, (), lambda *_: RuleResult(findings=(cause, symptom)), SubjectKind.CLUSTER)
    found = detect((rule,), {}, rule_context(agent(), nodes=(node_fact("n1"),)), DetectionHistory())
    assert [max(map(len, each.labels.values())) for each in found.findings] == [253, 253]
    saved = (found.history.findings, found.history.units)  # in two files
    assert [len(msgspec.json.encode(part)) < 64 * 1024 for part in saved] == [True, True]
    assert [each.explained_by is not None for each in found.findings] == [
        "pod" in each.labels for each in found.findings
    ]


def storm() -> Notification:
    return notification(*(subject(finding(mount=f"/m{number}")) for number in range(MANY)))


def delivered(kind: str, *notifications: Notification, behave: Any = None) -> list[bytes]:
    with LocalServer(behave) as server:
        receiver(kind, f"{server.base}/send?key=k").deliver(batch(*notifications))
        return [asked.body for asked in server.asked if asked.method == "POST"]


def test_a_webhook_body_has_a_limit_and_counts_what_it_leaves_out() -> None:
    (body,) = delivered("webhook", storm())
    assert len(body) < 1.5 * MAX_WEBHOOK_BYTES
    payload = json.loads(body)
    assert payload["truncatedAlerts"] > 0
    assert payload["truncatedAlerts"] + len(payload["alerts"]) == MANY


def test_an_alertmanager_gets_all_alerts_in_requests_of_limited_size() -> None:
    large = [subject(finding(mount=f"/m{number}" + "x" * 200, job="j" * 9_000)) for number in range(1000)]
    bodies = delivered("alertmanager", notification(*large))
    assert max(map(len, bodies)) < 1.5 * MAX_WEBHOOK_BYTES
    assert sum(len(json.loads(body)) for body in bodies) == len(large)


def test_a_stored_notification_has_a_limit_and_counts_what_it_leaves_out(tmp_path: Path) -> None:
    store = AlertStore(str(tmp_path / FILE))
    message_storm = storm()
    for _ in range(3):  # the later ones are merged into the first
        store.send([message_storm], {})
    queue = store.outbox.queue("r", 60.0, NOW)
    (sent,) = [entry.notification for entry in queue.waiting]
    store.close()
    assert directory_bytes(str(tmp_path)) < 8 * MIB
    assert len(msgspec.json.encode(sent)) < 1.1 * MIB
    assert sent.omitted > 0
    assert len(sent.subjects) + sent.omitted >= MANY
    (message,) = delivered("wecom", sent, behave=BOT_ACCEPTS)
    assert str(len(sent.subjects) + sent.omitted) in message.decode()


# The state directory


def test_the_state_directory_has_a_limit(tmp_path: Path) -> None:
    store = AlertStore(str(tmp_path / FILE))
    message_storm = storm()
    for number in range(12):
        store.send([message_storm], {})
        queue = store.outbox.queue("r", 60.0, NOW)
        store.outbox.sent(store.outbox.claim("r", [entry.sequence for entry in queue.waiting], NOW), "ok", NOW + number)
    limit = 6 * MIB
    assert directory_bytes(str(tmp_path)) > limit
    keeper = StateKeeper(str(tmp_path), limit)
    keeper.start(store)
    try:
        wait_until(lambda: directory_bytes(str(tmp_path)) <= limit, 15, "old messages were removed")
        keeper.check()
        assert keeper.excess is None
        (tmp_path / "alerts.db.damaged-2026").write_bytes(b"x" * 2 * limit)
        keeper.check()
    finally:
        keeper.stop()
        store.close()
    assert (tmp_path / "alerts.db.damaged-2026").exists(), "what was moved aside is never deleted"
    state = MonitorState(started_at=NOW - 600, looked_at=NOW, state_excess=keeper.excess)
    (found,) = with_monitor_findings((), state, NOW)
    assert found.cause == "state-size"


# The whole daemon


@contextmanager
def attacked(state: Path, hook: LocalServer, **settings: str) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    """A daemon with one webhook, and its address."""
    address = f"127.0.0.1:{free_port()}"
    environ = quiet_environment(
        state,
        DAEMON__LISTEN=address,
        DAEMON__RULES__AGENT_SILENT__ENABLED="no",
        DAEMON__RULES__MOUNT_LOST__AFTER="0s",
        DAEMON__ALERTS__RECEIVERS=json.dumps([{"kind": "webhook", "url": f"{hook.base}/hook"}]),
        **settings,
    )
    # Its log is not read, and must not block it.
    process = subprocess.Popen(command("daemon"), env=environ, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield process, f"http://{address}"
    finally:
        process.kill()
        process.wait()


def assert_in_bounds(process: subprocess.Popen[bytes], hook: LocalServer, state: Path, page: str) -> None:
    assert max(len(asked.body) for asked in hook.asked) < MAX_WEBHOOK_BYTES
    assert directory_bytes(str(state)) < MAX_STATE
    assert _peak_rss(process.pid) < MAX_RSS
    assert get(f"{page}/v1/alerts")[0] == 200


def test_a_lying_agent_fills_neither_memory_nor_disk_nor_webhooks(tmp_path: Path) -> None:
    """Everything that an agent can say about 250 mounts, in 8 MiB: it took 796 MB of state and 20 MB per message."""
    state = tmp_path / "state"
    mount = {"path": "/m" + "y" * 15_000, "state": "missing", "since": 1.0, "error": "e" * 15_000}
    told = {"node": "n1", "at": time.time(), "agent_version": "1", "mounts": [
        mount | {"path": f"{number}{mount['path']}"} for number in range(250)
    ]}  # fmt: skip
    with (
        LocalServer() as hook,
        FakeAgent(answers(json.dumps(told).encode())) as liar,
        attacked(state, hook, DAEMON__AGENTS__STATIC=f"['{liar.target}']") as (process, page),
    ):
        wait_until(lambda: hook.asked and os.path.exists(state / "findings.json"), 120, "it was sent")
        assert_in_bounds(process, hook, state, page)


def test_sixty_pods_with_huge_image_names_fill_neither(tmp_path: Path) -> None:
    state, api = tmp_path / "state", LivingApi()
    api.put("nodes", kube_node("n1"))
    for number in range(60):  # 90 MB: more than a page of a list may have
        item = kube_pod(f"p{number}", node="n1")
        name = f"harbor.lab/x{number}:" + "z" * (MIB // 2)
        item["spec"]["containers"][0]["image"] = name
        waiting = {"reason": "ImagePullBackOff", "message": f'Back-off pulling image "{name}"'}
        item["status"] = {
            "phase": "Pending",
            "containerStatuses": [{"name": "main", "image": name, "state": {"waiting": waiting}}],
        }
        api.put("pods", item)
    with LocalServer() as hook, api.served():
        kubernetes = {"DAEMON__KUBERNETES__ENABLED": "yes", "DAEMON__KUBERNETES__KUBECONFIG": api.kubeconfig(tmp_path)}
        with attacked(state, hook, **kubernetes) as (process, page):
            wait_until(lambda: _told(hook, "ImagePull") >= 60, 120, "every pod was reported")
            assert_in_bounds(process, hook, state, page)


def _told(hook: LocalServer, alertname: str) -> int:
    alerts = [alert for asked in hook.asked for alert in json.loads(asked.body)["alerts"]]
    return len({alert["fingerprint"] for alert in alerts if alert["labels"]["alertname"] == alertname})
