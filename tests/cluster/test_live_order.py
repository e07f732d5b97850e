"""LiveCluster when events arrive in an unlucky order or an update fails."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path
from typing import Any

import pytest

from monitor.cluster.live import LiveCluster
from monitor.facts.kube import PodFact
from monitor.kube.client import connect
from tests.cluster.living import living, node_of, settings, source, states, two_gpus, until
from tests.support.fake_agents import FakeAgent, reports
from tests.support.living_api import LivingApi, agent_pod, kube_node, kube_pod


@pytest.fixture
def api() -> LivingApi:
    return LivingApi()


def test_without_kubernetes_for_a_while(api: LivingApi, tmp_path: Path) -> None:
    """GPU 0 belongs to a known pod, GPU 1 to a pod unknown to Kubernetes, which proves nothing during an outage.

    The cycle is long: missing sources are noticed sooner.
    """
    api.put("nodes", kube_node("n1", 2))
    api.put("pods", kube_pod("known", "n1", 1))
    with FakeAgent(reports(two_gpus("n1", "known"))) as agent, contextlib.ExitStack() as api_server:
        api_server.enter_context(api.served())
        cluster = LiveCluster(settings(agent, cycle=600), connect(api.kubeconfig(tmp_path)))
        with living(cluster):
            until(cluster, lambda view: states(view) == {0: "busy", 1: "free"}, "both GPUs are known")
            before = time.time()
            api_server.close()
            view = until(cluster, lambda view: not source(view, "pods").ok, "the outage is reported")
            missed = source(view, "pods")
            assert missed.since == pytest.approx(before, abs=60)
            assert "Connection refused" in (missed.why or "")
            assert "pods, their owners and what they ask for" in (missed.why or "")
            agent.behave = reports(two_gpus("n1", "known", "unheard-of"))
            until(cluster, lambda view: states(view)[1] != "free", "the agent is still heard")
            deadline = time.monotonic() + 1.5  # longer than `settle`
            while time.monotonic() < deadline:
                assert states(cluster.view) == {0: "busy", 1: "busy"}
                assert [pod.name for pod in cluster.view.pods] == ["known"]
                assert [node.name for node in cluster.view.nodes] == ["n1"]
                time.sleep(0.02)
            assert source(cluster.view, "pods").since == missed.since
            with api.served():
                until(cluster, lambda view: all(source.ok for source in view.sources), "Kubernetes is back")
                view = until(cluster, lambda view: states(view)[1] == "zombie", "the pod is known to be deleted")
                assert states(view)[0] == "busy"
                api.put("pods", kube_pod("unheard-of", "n1", 1))
                until(cluster, lambda view: states(view) == {0: "busy", 1: "busy"}, "the pod exists")


def test_a_cluster_that_was_never_there(tmp_path: Path, api: LivingApi) -> None:
    with api.served():
        config = api.kubeconfig(tmp_path)
    with FakeAgent(reports(two_gpus("n1"))) as agent, living(LiveCluster(settings(agent), connect(config))) as cluster:
        view = until(cluster, lambda view: view.gpus and not source(view, "pods").ok, "the node is seen")
        assert source(view, "agents").ok
        assert "Connection refused" in (source(view, "pods").why or "")
        assert states(view) == {0: "free", 1: "free"}


def test_an_owner_that_is_known_later_names_the_job(api: LivingApi, tmp_path: Path) -> None:
    owned: dict[str, Any] = {"controller": True, "apiVersion": "apps/v1"}
    replica_set = owned | {"kind": "ReplicaSet", "name": "web-7f9", "uid": "uid-rs"}
    deployment = owned | {"kind": "Deployment", "name": "web", "uid": "uid-d"}
    api.put("pods", kube_pod("web-7f9-x", "n1", ownerReferences=[replica_set]))
    with api.served(), living(LiveCluster(settings(), connect(api.kubeconfig(tmp_path)))) as cluster:
        view = until(cluster, lambda view: view.pods, "the pod is seen")
        assert (view.pods[0].identity.job, view.pods[0].identity.workload_kind) == ("web-7f9", "ReplicaSet")
        meta = {"name": "web-7f9", "namespace": "lab", "uid": "uid-rs", "ownerReferences": [deployment]}
        api.put("replicasets", {"metadata": meta})
        view = until(cluster, lambda view: view.pods[0].identity.job == "web", "the Deployment is found")
        assert view.pods[0].identity.workload_kind == "Deployment"


def test_a_node_made_again_survives_the_late_end_of_the_old_one(api: LivingApi, tmp_path: Path) -> None:
    api.put("nodes", kube_node("n1", 1, uid="old"))
    with api.served(), living(LiveCluster(settings(cycle=600), connect(api.kubeconfig(tmp_path)))) as cluster:
        until(cluster, lambda view: view.nodes, "the old one is seen")
        api.put("nodes", kube_node("n1", 4, uid="new"))
        until(cluster, lambda view: view.nodes[0].allocatable == 4, "the new one is seen")
        api.delete("nodes", "old")
        api.put("nodes", kube_node("n2", 1))
        until(cluster, lambda view: node_of(view, "n2"), "what came after is seen")
        assert [(node.name, node.allocatable) for node in cluster.view.nodes] == [("n1", 4), ("n2", 1)]


class FailingOnce(LiveCluster):
    """Fails once on a pod called odd, as a bug would."""

    failed = False

    def _identify(self, pod: PodFact) -> Any:
        if pod.name == "odd" and not self.failed:
            self.failed = True
            raise RuntimeError("a bug")
        return super()._identify(pod)


def test_a_view_that_could_not_be_made_loses_no_change(
    api: LivingApi, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with api.served(), living(FailingOnce(settings(cycle=600), connect(api.kubeconfig(tmp_path)))) as cluster:
        until(cluster, lambda view: source(view, "pods").ok, "Kubernetes is known")
        for name in ("before", "odd", "after"):
            api.put("pods", kube_pod(name))
        until(cluster, lambda view: [p.name for p in view.pods] == ["after", "before", "odd"], "all are seen")
    assert "view failed" in caplog.text


def test_one_look_without_following(api: LivingApi, tmp_path: Path) -> None:
    """One-shot read, as by the command line."""
    api.put("nodes", kube_node("n1", 2))
    api.put("pods", agent_pod("a1", "n1", "127.0.0.1"))
    api.put("pods", kube_pod("train", "n1", 1))
    with FakeAgent(reports(two_gpus("n1", "train"))) as agent, api.served():
        cluster = LiveCluster(settings(port=agent.port), connect(api.kubeconfig(tmp_path)))
        assert cluster.kube is not None
        cluster.kube.start()
        cluster.poller.start()
        try:
            cluster.wait_settled(60)
            assert cluster.answered_once()
            assert states(cluster.view) == {0: "busy", 1: "free"}
            assert all(source.ok for source in cluster.view.sources)
            assert {uid: identity.user for uid, identity in cluster.identities().items()} == {
                "uid-a1": "lab", "uid-train": "lab",
            }  # fmt: skip
        finally:
            cluster.stop()
