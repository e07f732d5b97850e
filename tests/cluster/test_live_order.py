"""The cluster as it lives, when things come in an unlucky order or go wrong on the way."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path
from typing import Any

import pytest

from monitor.cluster.live import LiveCluster
from monitor.facts.kube import PodFact
from monitor.kube.client import connect
from tests.cluster.living import living, node_of, settings, source, states, two_cards, until
from tests.support.fake_agents import FakeAgent, reports
from tests.support.living_api import LivingApi, agent_pod, kube_node, kube_pod


@pytest.fixture
def api() -> LivingApi:
    return LivingApi()


def test_without_kubernetes_for_a_while(api: LivingApi, tmp_path: Path) -> None:
    """Card 0 is a known pod's, card 1 that of a pod which Kubernetes has not: that it is away proves nothing.

    The cycle is a minute: who is missing is noticed sooner.
    """
    api.put("nodes", kube_node("n1", 2))
    api.put("pods", kube_pod("known", "n1", 1))
    with FakeAgent(reports(two_cards("n1", "known"))) as agent, contextlib.ExitStack() as away:
        away.enter_context(api.served())
        cluster = LiveCluster(settings(agent, cycle=60), connect(api.kubeconfig(tmp_path)))
        with living(cluster):
            until(cluster, lambda view: states(view) == {0: "busy", 1: "free"}, "all is well")
            before = time.time()
            away.close()
            view = until(cluster, lambda view: not source(view, "pods").ok, "Kubernetes is missed")
            missed = source(view, "pods")
            assert missed.since == pytest.approx(before, abs=3)
            assert "Connection refused" in (missed.why or "")
            assert "pods, their owners and what they ask for" in (missed.why or "")
            agent.behave = reports(two_cards("n1", "known", "unheard-of"))
            until(cluster, lambda view: states(view)[1] != "free", "the agent is still heard")
            deadline = time.monotonic() + 1.5  # well over `settle`
            while time.monotonic() < deadline:
                assert states(cluster.view) == {0: "busy", 1: "busy"}
                assert [pod.name for pod in cluster.view.pods] == ["known"]
                assert [node.name for node in cluster.view.nodes] == ["n1"]
                time.sleep(0.02)
            assert source(cluster.view, "pods").since == missed.since
            with api.served():
                until(cluster, lambda view: all(each.ok for each in view.sources), "Kubernetes is back")
                view = until(cluster, lambda view: states(view)[1] == "zombie", "now it is known that it is deleted")
                assert states(view)[0] == "busy"
                api.put("pods", kube_pod("unheard-of", "n1", 1))
                until(cluster, lambda view: states(view) == {0: "busy", 1: "busy"}, "and now it is there")


def test_a_cluster_that_was_never_there(tmp_path: Path, api: LivingApi) -> None:
    with api.served():
        config = api.kubeconfig(tmp_path)
    with FakeAgent(reports(two_cards("n1"))) as agent, living(LiveCluster(settings(agent), connect(config))) as cluster:
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
    with api.served(), living(LiveCluster(settings(cycle=60), connect(api.kubeconfig(tmp_path)))) as cluster:
        until(cluster, lambda view: view.nodes, "the old one is seen")
        api.put("nodes", kube_node("n1", 4, uid="new"))
        until(cluster, lambda view: view.nodes[0].allocatable == 4, "the new one is seen")
        api.delete("nodes", "old")
        api.put("nodes", kube_node("n2", 1))
        until(cluster, lambda view: node_of(view, "n2"), "what came after is seen")
        assert [(node.name, node.allocatable) for node in cluster.view.nodes] == [("n1", 4), ("n2", 1)]


class Stumbling(LiveCluster):
    """Fails once on a pod called odd, as a mistake in the program would."""

    stumbled = False

    def _identify(self, pod: PodFact) -> Any:
        if pod.name == "odd" and not self.stumbled:
            self.stumbled = True
            raise RuntimeError("a mistake in the program")
        return super()._identify(pod)


def test_a_view_that_could_not_be_made_loses_no_change(
    api: LivingApi, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with api.served(), living(Stumbling(settings(cycle=60), connect(api.kubeconfig(tmp_path)))) as cluster:
        until(cluster, lambda view: source(view, "pods").ok, "Kubernetes is known")
        for name in ("before", "odd", "after"):
            api.put("pods", kube_pod(name))
        until(cluster, lambda view: [p.name for p in view.pods] == ["after", "before", "odd"], "all are seen")
    assert "the view could not be made" in caplog.text


def test_one_look_without_following(api: LivingApi, tmp_path: Path) -> None:
    """As the command line does it."""
    api.put("nodes", kube_node("n1", 2))
    api.put("pods", agent_pod("a1", "n1", "127.0.0.1"))
    api.put("pods", kube_pod("train", "n1", 1))
    with FakeAgent(reports(two_cards("n1", "train"))) as agent, api.served():
        cluster = LiveCluster(settings(port=agent.port), connect(api.kubeconfig(tmp_path)))
        assert cluster.kube is not None
        cluster.kube.start()
        cluster.poller.start()
        try:
            cluster.wait_settled(5)
            assert states(cluster.view) == {0: "busy", 1: "free"}
            assert all(each.ok for each in cluster.view.sources)
            assert {uid: who.user for uid, who in cluster.identities().items()} == {
                "uid-a1": "lab", "uid-train": "lab",
            }  # fmt: skip
        finally:
            cluster.stop()
