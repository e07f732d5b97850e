"""Input of the daemon: agents, API server, metrics store, Alertmanager, Harbor, configuration."""

from __future__ import annotations

import contextlib
import functools
import io
import tempfile
import threading
from collections.abc import Callable
from typing import Any
from unittest import mock

import msgspec
from prometheus_client.parser import text_string_to_metric_families

from monitor.access.errors import RequestRejectedError
from monitor.alert.alertmanager.active import continued, read_active
from monitor.alert.alertmanager.callback import NotificationLog, OwnAlerts, process_callback, read_payload
from monitor.alert.alertmanager.silences import read_silences
from monitor.alert.matchers import parse_matcher
from monitor.alert.message.locale import Locale
from monitor.alert.message.template import check_template, render_template
from monitor.base.http import Reply, as_json
from monitor.base.metrics import text_of
from monitor.cleanup.execute import harbor as registry_harbor
from monitor.cleanup.policy import RegistryPolicy
from monitor.cli.tables import print_view
from monitor.cluster.agents.client import AgentError
from monitor.cluster.agents.snapshot import SnapshotFollower, decode_snapshot
from monitor.cluster.identity import identify
from monitor.cluster.owners import no_owners
from monitor.cluster.platforms import all_rules
from monitor.cluster.view import ViewBuilder
from monitor.cluster.view_inputs import ClusterContext, ViewInputs
from monitor.config import file as config_file
from monitor.config import yaml_text
from monitor.daemon.metrics.cluster import ClusterFamilies
from monitor.detect.base import RuleContext
from monitor.detect.engine import detect
from monitor.detect.history import DetectionHistory
from monitor.detect.rule_state import RULE_BROKEN
from monitor.detect.rules import RULES
from monitor.explain.error_chain.mounts import classify_mount
from monitor.explain.error_chain.pulls import classify_pull
from monitor.explain.error_chain.scheduling import main_reason, parse_scheduling
from monitor.explain.error_chain.starts import classify_start
from monitor.explain.image_pull import classify as classify_image_pull
from monitor.explain.quota_message import parse_denial
from monitor.facts.agents import AgentFact
from monitor.facts.cluster import ClusterView
from monitor.facts.facts_index import make_cluster_facts
from monitor.facts.node import NodeSnapshot
from monitor.kube.decode import stream
from monitor.kube.decode.pod import PodFieldFilter
from monitor.kube.decode.values import parse_quantity, parse_time
from monitor.web.forms import parse_form
from tests.alert.receivers.batches import batch
from tests.cluster.builders import NOW, agent, card, device, node, pod
from tests.support.snapshots import POD, full_snapshot

LONGEST_LABEL = 253
PLATFORMS = all_rules()
MINE = msgspec.structs.replace(pod("bert-0"), uid=POD)
OTHER = pod("other", node="n2")
HONEST = agent(card(0, "n2"), node="n2", devices=(device(OTHER, 0, "n2"),))


def view_of(*agents: AgentFact) -> ClusterView:
    """The daemon's view of two nodes and their pods."""
    builder = ViewBuilder(lambda each: identify(each, no_owners, PLATFORMS, {}))
    around = ClusterContext(pods_known=True)
    return builder.build(ViewInputs(agents, (MINE, OTHER), (node("n1"), node("n2")), around), NOW).view()


@functools.cache
def _undisturbed() -> Any:
    return _of_other(view_of(HONEST))


def _of_other(view: ClusterView) -> Any:
    return [[each for each in part if _place(each) == "n2"] for part in (view.nodes, view.gpus, view.pods)]


def _place(each: Any) -> str | None:
    return each.name if hasattr(each, "heard_at") else each.node  # type: ignore[no-any-return]  # either fact type


def check_rules(snapshot: NodeSnapshot) -> ClusterView:
    """Evaluate one agent's snapshot and return the view; check that another node's facts are unchanged."""
    liar = AgentFact(target="n1:9835", node="n1", snapshot=snapshot, received_at=NOW - 1)
    view = view_of(liar, HONEST)
    assert _of_other(view) == _undisturbed()
    world = make_cluster_facts(pods=(MINE, OTHER), nodes=(node("n1"), node("n2")), agents=(liar, HONEST), view=view)
    found = detect(RULES, {}, RuleContext(world, NOW), DetectionHistory())
    for finding in found.findings:
        assert finding.cause != RULE_BROKEN, finding.raw
        assert all(0 < len(value) <= LONGEST_LABEL for value in finding.labels.values()), finding.labels
    return view


def check_snapshot(snapshot: NodeSnapshot) -> None:
    """Evaluate and display one agent's snapshot."""
    view = check_rules(snapshot)
    for family in text_string_to_metric_families(text_of(ClusterFamilies()(view)).decode()):
        for sample in family.samples:
            assert all(len(value) <= LONGEST_LABEL for value in sample.labels.values()), sample.labels
    printed = io.StringIO()
    print_view(view, printed)
    assert all(line.isprintable() for line in printed.getvalue().split("\n"))


def snapshot(data: bytes) -> None:
    """Agent response, from bytes to findings, metrics and terminal output."""
    try:
        told = decode_snapshot(data)
    except AgentError:
        return
    check_snapshot(told)


def update(data: bytes) -> None:
    """Agent response with changes, for a daemon that knows a snapshot."""
    known = msgspec.json.encode(msgspec.to_builtins(full_snapshot()) | {"version": "v1"})
    follower = SnapshotFollower()
    follower.read(lambda _: known)
    with contextlib.suppress(AgentError):
        check_snapshot(follower.read(lambda _: data))


KINDS: tuple[Any, ...] = (
    stream.pods(PodFieldFilter()), stream.NODES, stream.EVENTS, stream.QUOTAS, stream.NAMESPACES, stream.OWNERS,
    stream.VOLCANO_QUEUES, stream.POD_GROUPS, stream.KUEUE_QUEUES, stream.WORKLOADS,
    stream.RESOURCE_CLAIMS, stream.RESOURCE_SLICES, stream.DEVICE_CLASSES,
)  # fmt: skip


def kube_list(data: bytes) -> None:
    """List response of the API server; tenants write the pods."""
    for kind in KINDS:
        with contextlib.suppress(stream.MalformedResponseError):
            for fact in kind.page(data).items:
                msgspec.json.encode(fact)
    stream.decode_status(data)


def kube_watch(data: bytes) -> None:
    """Lines of a watch, in the chunks in which they arrive."""
    chunks = [data[at : at + 97] for at in range(0, len(data), 97)]
    with contextlib.suppress(stream.MalformedResponseError):
        for line in stream.lines(chunks):
            for kind in KINDS:
                with contextlib.suppress(stream.MalformedResponseError):
                    msgspec.json.encode(kind.line(line))


def kube_values(data: bytes) -> None:
    """Quantities and times."""
    text = data.decode("utf-8", "replace")
    for figure in (parse_quantity(text), parse_time(text)):
        assert figure is None or abs(figure) < float("inf"), figure


def callback(data: bytes) -> None:
    """Webhook body of /v1/alertmanager."""
    try:
        payload = read_payload(data)
    except ValueError:
        return
    told = process_callback(payload, ("ops",), NotificationLog(), OwnAlerts(), NOW)
    for one in told.notifications:
        text = render_template("", batch(one), Locale(lang="zh"), 4096)
        assert len(text.encode()) <= 4096
    msgspec.json.decode(msgspec.json.encode(told.log), type=NotificationLog)


def silences(data: bytes) -> None:
    """An Alertmanager's silences."""
    with contextlib.suppress(ValueError, msgspec.MsgspecError, RecursionError):  # like its only caller
        msgspec.json.encode(read_silences(data))


def active_alerts(data: bytes) -> None:
    """An Alertmanager's active alerts, which are sent back with their labels."""
    with contextlib.suppress(ValueError, msgspec.MsgspecError, RecursionError):  # like its only caller
        for alert in read_active(data, ("shm-pressure",)).of("shm-pressure", {"namespace": "ml", "pod": "train-0"}):
            as_json(continued({"severity": "critical"}, alert.labels))


def matcher(data: bytes) -> None:
    """Matcher of a silence, as typed by a user."""
    with contextlib.suppress(ValueError):
        parse_matcher(data.decode("utf-8", "replace"))


def form(data: bytes) -> None:
    """A form of the web page."""
    with contextlib.suppress(RequestRejectedError):
        parse_form(data)


def template(data: bytes) -> None:
    """A message template: whatever its errors, the alert is sent."""
    text = data.decode("utf-8", "replace")
    with contextlib.suppress(ValueError):
        check_template(text)
        assert render_template(text, batch(), Locale(lang="en"), 2048)


def configuration(data: bytes) -> None:
    """The configuration file: every error names its location."""
    document = yaml_text.read(data.decode("utf-8", "replace"))
    assert all(flaw.message for flaw in document.flaws)
    with tempfile.NamedTemporaryFile(suffix=".yml") as file:
        file.write(data)
        file.flush()
        with contextlib.suppress(config_file.ConfigError):
            config_file.load(file.name, {})


def explain_message(data: bytes) -> None:
    """Failure message of a runtime, mount helper or scheduler; the first line names the image."""
    image, _, message = data.decode("utf-8", "replace").partition("\n")
    classify_image_pull("ErrImagePull", message, image)
    for classify in (classify_pull, classify_start, classify_mount):
        classify(message)
    main_reason(parse_scheduling(message))
    parse_denial(message)


def harbor(data: bytes) -> None:
    """Response of Harbor."""
    _answering(data, lambda it: it.retention_rules())
    _answering(data, lambda it: it.retention_since("p", 1, 0.0))
    _answering(data, lambda it: it.gc_since(0.0))


def _answering(data: bytes, ask: Callable[[registry_harbor.Harbor], object]) -> None:
    it = registry_harbor.Harbor(RegistryPolicy(name="h", url="http://harbor.invalid"), threading.Event())
    answers = mock.patch.object(registry_harbor, "get", return_value=Reply(200, {}, data))
    with answers, contextlib.suppress(registry_harbor.HarborError):
        ask(it)
