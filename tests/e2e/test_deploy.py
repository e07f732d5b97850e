"""The image and the chart in a real cluster: real pods with exactly the chart's permissions.

One ordered story: the installation sees everything and may change nothing until permitted.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from monitor.facts import NodeSnapshot
from monitor.facts.cluster import GpuView
from tests.deploy.helm import CHART, helm, one, render
from tests.deploy.image import load_image
from tests.deploy.values import EVERYTHING
from tests.e2e.deploying import NAMESPACE, TOKENS, VERSION, Applier, Deployed, deployed
from tests.lab.api import Api
from tests.lab.lab import Lab
from tests.lab.layout import NODE
from tests.support import wait_until

GIB = 1 << 30
OPERATOR = "monitoring.coreos.com/"
pytestmark = pytest.mark.timeout(600)  # includes building the image once


@pytest.fixture(scope="module")
def installed(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployed]:
    image = load_image(lab.engine)
    with deployed(lab, image, tmp_path_factory.mktemp("deployed")) as found:
        yield found


@pytest.fixture(scope="module")
def idle(installed: Deployed) -> Iterator[Any]:
    """An idle pod that holds a GPU."""
    pod = installed.lab.run_pod("idle", gpus=1, labels={"userName": "li.lei"})
    yield pod
    installed.lab.delete_pods(pod)


def card_of(installed: Deployed, pod: Any) -> GpuView | None:
    cards = installed.view().gpus
    return next((gpu for gpu in cards if pod.metadata.uid in {holder.pod_uid for holder in gpu.holders}), None)


def test_all_that_the_chart_can_make_is_understood_by_an_old_api_server(lab: Lab, installed: Deployed) -> None:
    objects = render(EVERYTHING, namespace=NAMESPACE, version=VERSION)
    known = [each for each in objects if not each["apiVersion"].startswith(OPERATOR)]
    assert len(known) > 20
    api = Api(lab.kubeconfig)
    try:
        Applier(api).apply(known, dry_run=True)
    finally:
        api.close()


def test_the_daemon_sees_the_node_its_agent_its_cards_and_the_pods(installed: Deployed, idle: Any) -> None:
    wait_until(lambda: len(installed.view().gpus) == len(installed.lab.gpu_ids), 30, "all cards are seen")
    view = installed.view()
    (node,) = [each for each in view.nodes if each.name == NODE]
    assert (node.ready, node.silent_since) == (True, None)
    assert {each.name for each in view.pods} >= {idle.metadata.name}
    wait_until(lambda: card_of(installed, idle), 30, "the card of the pod is known")
    card = card_of(installed, idle)
    assert card is not None
    assert [holder.user for holder in card.holders] == ["li.lei"]


def test_every_kind_of_object_that_is_followed_may_be_read(installed: Deployed) -> None:
    wait_until(lambda: all(source.ok for source in installed.view().sources), 30, "every source is seen")
    assert {source.name for source in installed.view().sources} >= {"agents", "events", "nodes", "pods"}


def test_the_agent_sees_the_node_and_not_its_container(installed: Deployed, idle: Any) -> None:
    card = card_of(installed, idle)
    assert card is not None
    index, pid = installed.lab.gpu_ids.index(card.uuid or ""), installed.lab.container_pid(idle)
    installed.nvml.process(index, pid, memory=GIB)
    try:
        wait_until(lambda: pid in pids(installed.snapshot()), 20, "the process is on the card")
        wait_until(lambda: container_ids(installed.snapshot(), idle), 40, "the container and its memory are listed")
        found = installed.snapshot()
    finally:
        installed.nvml.end_process(index, pid)
    assert [each.name for each in found.collectors if each.outcome not in ("ok", "absent", "starting")] == []
    assert {each.pod_uid for each in found.gpu_processes or () if each.pid == pid} == {idle.metadata.uid}
    assert len(container_ids(found, idle)) == 1
    assert "/" in {each.mount for each in found.disk or ()}
    assert idle.metadata.name in {each.pod_name for each in found.pod_devices or ()}


def container_ids(snapshot: NodeSnapshot, pod: Any) -> set[str]:
    """Containers of the pod that both the runtime collector and the shared memory collector report."""
    listed = {
        each.id for each in snapshot.containers or () if each.pod_uid == pod.metadata.uid and each.container == "main"
    }
    return listed & {each.container_id for each in snapshot.shm or () if each.container_id}


def pids(snapshot: NodeSnapshot) -> set[int]:
    return {each.pid for each in snapshot.gpu_processes or ()}


def test_nobody_gets_anything_without_a_token(installed: Deployed) -> None:
    assert installed.agent("/metrics", token=None)[0] == 401
    assert installed.page("GET", "/v1/view", token=None)[0] == 401
    assert installed.page("GET", "/healthz", token=None)[0] == 200
    assert installed.agent("/metrics")[0] == 200
    assert installed.page("GET", "/")[0] == 200
    assert installed.page("GET", "/metrics", token=None)[0] == 401


def test_prometheus_gets_the_metrics_and_may_do_nothing(installed: Deployed) -> None:
    status, body = installed.page("GET", "/metrics", token=TOKENS["metricsToken"])
    assert (status, "gpuwarden_daemon_info{" in body) == (200, True)
    wanted = {"nodes": [NODE]}
    assert installed.page("POST", "/v1/actions/cordon", wanted, token=TOKENS["metricsToken"])[0] == 403


def test_an_upgrade_keeps_the_tokens_that_are_there(installed: Deployed) -> None:
    """Helm looks them up in the cluster; here none are given."""
    where = (
        "--namespace",
        NAMESPACE,
        "--kubeconfig",
        str(installed.lab.kubeconfig),
        "--dry-run=server",
        "--is-upgrade",
    )
    done = helm("template", "gpuwarden", str(CHART), *where, values={})
    assert done.returncode == 0, done.stderr
    secret = one([each for each in yaml.safe_load_all(done.stdout) if each], "Secret")
    kept = {key: base64.b64decode(value).decode() for key, value in secret["data"].items()}
    assert kept == {"agent-token": "a" * 30, "page-token": "p" * 30, "metrics-token": "m" * 30}


def test_the_daemon_is_no_root_and_the_agent_has_no_account(installed: Deployed) -> None:
    for component, user in (("agent", "0"), ("daemon", "65532")):
        (pod,) = installed.pods(component)
        container = pod["status"]["containerStatuses"][0]["containerID"].partition("://")[2]
        found = installed.lab.engine.confinement(container)
        assert (found.user, found.read_only_root, found.privileged) == (user, True, False)
        account = [point for point in found.mount_points if "serviceaccount" in point]
        assert len(account) == (component == "daemon")


def test_what_is_not_allowed_is_refused_by_the_api_server_and_said_clearly(installed: Deployed, idle: Any) -> None:
    victim = {"namespace": "default", "name": idle.metadata.name, "uid": idle.metadata.uid}
    wait_until(lambda: is_idle(installed, idle), 60, "the card is known to be idle")
    card = card_of(installed, idle)
    assert card is not None
    for action, wanted, may_not in (
        ("delete-pods", {"pods": [victim]}, 'cannot delete resource "pods"'),
        ("cordon", {"nodes": [NODE]}, 'cannot patch resource "nodes"'),
        ("release-gpu", {"node": NODE, "gpu": card.uuid}, 'cannot create resource "pods/eviction"'),
    ):
        outcome = installed.act(action, **wanted)
        (step,) = outcome.steps
        assert (outcome.ok, step.state, step.outcome) == (False, "failed", "forbidden"), step
        assert may_not in (step.message or "")
        assert f"system:serviceaccount:{NAMESPACE}:gpuwarden" in (step.message or "")
    assert installed.lab.cluster.read_pod(idle).metadata.deletion_timestamp is None


def test_with_the_role_to_release_it_is_done(installed: Deployed, idle: Any) -> None:
    installed.upgrade(rbac={"release": True})
    wait_until(lambda: installed.act("cordon", nodes=[NODE]).ok, 20, "the node is cordoned")
    assert installed.lab.cluster.node(NODE).spec.unschedulable is True  # type: ignore[union-attr]  # it is there
    assert installed.act("uncordon", nodes=[NODE]).ok
    wait_until(lambda: is_idle(installed, idle), 30, "the card is idle")
    card = card_of(installed, idle)
    assert card is not None
    assert installed.act("release-gpu", node=NODE, gpu=card.uuid).ok
    wait_until(lambda: card_of(installed, idle) is None, 60, "the card is free")
    other = installed.lab.run_pod("other")
    victim = {"namespace": "default", "name": "other", "uid": other.metadata.uid}
    wait_until(lambda: "other" in {each.name for each in installed.view().pods}, 20, "the other pod is known")
    assert installed.act("delete-pods", pods=[victim]).ok
    installed.lab.delete_pods(other)


def is_idle(installed: Deployed, pod: Any) -> bool:
    card = card_of(installed, pod)
    return card is not None and card.state.value == "idle-held"
