"""LiveCluster while Kubernetes and agents appear, change, disappear and return."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from monitor.cluster.live import LiveCluster
from monitor.facts.cluster import GpuState, SourceView
from monitor.facts.kept_facts import KeptFacts
from monitor.kube.client import connect
from monitor.queries.cluster import current_moment
from tests.cluster.builders import GPU
from tests.cluster.living import SOON, living, missing, settings, source, states, two_gpus, until
from tests.support import wait_until
from tests.support.fake_agents import FakeAgent, reports, says_nothing
from tests.support.living_api import LivingApi, agent_pod, kube_node, kube_pod
from tests.support.resource_claims import claim_json, class_json, gpu_json, pod_json, slice_json


@pytest.fixture
def api() -> LivingApi:
    return LivingApi()


def test_a_change_is_in_the_view_within_a_second(api: LivingApi, tmp_path: Path) -> None:
    """The cycle is so long that only the change itself can update the view."""
    with api.served(), living(LiveCluster(settings(cycle=600), connect(api.kubeconfig(tmp_path)))) as cluster:
        until(cluster, lambda view: source(view, "pods").ok and source(view, "nodes").ok, "Kubernetes is synced")
        api.put("pods", kube_pod("train", "n1", 2, labels={"userName": "li"}))
        view = until(cluster, lambda view: view.pods, "the pod is seen")
        assert [(pod.name, pod.requested_gpus, pod.identity.user) for pod in view.pods] == [("train", 2, "li")]
        assert view.users["li"].gpus == 2
        api.put("nodes", kube_node("n1", 8))
        view = until(cluster, lambda view: view.nodes, "the node is seen")
        assert (view.nodes[0].allocatable, view.nodes[0].free) == (8, 6)
        api.delete("pods", "uid-train")
        view = until(cluster, lambda view: not view.pods, "the pod is gone")
        assert (view.nodes[0].free, view.users) == (8, {})
        api.delete("nodes", "uid-n1")
        until(cluster, lambda view: not view.nodes, "the node is gone")


def test_a_claim_makes_its_gpu_busy_while_it_lasts(api: LivingApi, tmp_path: Path) -> None:
    api.groups.add("resource.k8s.io")
    api.put("nodes", kube_node("n1"))
    api.put("resourceslices", slice_json(gpu_json(0), gpu_json(1)))
    api.put("deviceclasses", class_json())
    api.put("pods", pod_json("train", "train-gpu"))
    with (
        FakeAgent(reports(two_gpus("n1"))) as agent,
        api.served(),
        living(LiveCluster(settings(agent), connect(api.kubeconfig(tmp_path)))) as cluster,
    ):
        view = until(cluster, lambda view: view.nodes and view.nodes[0].free == 2, "the slice is seen")
        assert (view.nodes[0].capacity, view.nodes[0].disagreements) == (2, ())
        api.put("resourceclaims", claim_json("train-gpu", "gpu-1", pods=["train"]))
        view = until(cluster, lambda view: states(view) == {0: "free", 1: "busy"}, "the claim is seen")
        assert [holder.pod for holder in view.gpus[1].holders] == ["train"]
        facts = KeptFacts(GPU).at(current_moment(cluster))
        assert facts.pod_by_uid["uid-train"].requests[GPU] == 1.0
        assert facts.node_by_name["n1"].allocatable[GPU] == 2.0
        assert ("team", "train-gpu") in facts.claim_by_name
        api.delete("resourceclaims", "uid-train-gpu")
        until(cluster, lambda view: states(view) == {0: "free", 1: "free"}, "the claim is gone")


def test_without_agents_pods_are_watched(api: LivingApi, tmp_path: Path) -> None:
    api.put("nodes", kube_node("n1", 2))
    with api.served(), living(LiveCluster(settings(), connect(api.kubeconfig(tmp_path)))) as cluster:
        view = until(cluster, lambda view: view.gpus and missing(view) == {"agents"}, "all but the agents is seen")
        assert source(view, "agents").why == "no agent was found; start one on each node"
        assert states(view) == {0: GpuState.UNKNOWN, 1: GpuState.UNKNOWN}
        assert not view.nodes[0].has_agent


def test_who_catches_up_sees_agents_that_have_yet_to_answer_and_what_came_meanwhile(
    api: LivingApi, tmp_path: Path
) -> None:
    api.put("nodes", kube_node("n1", 2))
    with FakeAgent(says_nothing, host="127.0.0.1") as agent, api.served():
        api.put("pods", agent_pod("a1", "n1", "127.0.0.1"))
        with living(LiveCluster(settings(port=agent.port, cycle=600), connect(api.kubeconfig(tmp_path)))) as cluster:
            wait_until(lambda: agent.asked, SOON, "the agent is polled")
            before = until(cluster, lambda view: view.nodes, "the node is seen")
            cluster.catch_up()
            assert not before.nodes[0].has_agent, "an agent is in the view once it has answered or failed"
            assert cluster.view.nodes[0].has_agent
            api.put("pods", kube_pod("train", "n1", 1))
            wait_until(lambda: cluster.kube and len(cluster.kube.pods) == 2, SOON, "the watch delivers the pod")
            cluster.catch_up()
            assert cluster.view.nodes[0].requested == 1


def test_agents_are_the_running_pods_with_the_label(api: LivingApi, tmp_path: Path) -> None:
    """Agents of several nodes share a port, each at its own address."""
    with (
        FakeAgent(reports(two_gpus("n1")), host="127.0.0.1") as one,
        FakeAgent(reports(two_gpus("n2")), host="127.0.0.2", port=one.port) as two,
        FakeAgent(reports(two_gpus("n3")), host="127.0.0.3", port=one.port) as other,
        api.served(),
    ):
        api.put("pods", agent_pod("a1", "n1", "127.0.0.1"))
        api.put("pods", agent_pod("starting", "n4", None, "Pending"))
        api.put("pods", agent_pod("ended", "n3", "127.0.0.3", "Failed"))
        api.put("pods", kube_pod("unlabelled", "n3") | {"status": {"phase": "Running", "podIP": "127.0.0.3"}})
        cluster = LiveCluster(settings(port=one.port), connect(api.kubeconfig(tmp_path)))
        with living(cluster):
            view = until(cluster, lambda view: view.gpus, "the first agent is heard")
            assert (source(view, "agents").ok, [node.name for node in view.nodes]) == (True, ["n1"])
            api.put("pods", agent_pod("a2", "n2", "127.0.0.2"))
            until(cluster, lambda view: len(view.gpus) == 4, "the second agent is heard")
            api.delete("pods", "uid-a1")
            view = until(cluster, lambda view: len(view.gpus) == 2, "the first agent is gone, and its node with it")
            assert [node.name for node in view.nodes] == ["n2"]
            asked = len(one.asked)
            time.sleep(0.3)
            assert len(one.asked) <= asked + 1
            assert two.asked
            assert not other.asked


@pytest.mark.parametrize(
    ("label", "found"),
    [("app=gpuwarden-agent", True), ("app", True), ("app=other", False), ("app=", False), ("other", False)],
)
def test_labels_of_agents(api: LivingApi, tmp_path: Path, label: str, found: bool) -> None:
    api.put("pods", agent_pod("a1", "n1", "127.0.0.1"))
    with api.served(), living(LiveCluster(settings(label=label), connect(api.kubeconfig(tmp_path)))) as cluster:
        until(cluster, lambda view: view.pods, "the pod is seen")
        cluster.poller.update_targets()
        assert [fact.target for fact in cluster.poller.facts()] == ["127.0.0.1:1"] * found


def test_an_agent_on_an_address_of_version_6(api: LivingApi, tmp_path: Path) -> None:
    api.put("pods", agent_pod("a1", "n1", "fd00::1"))
    with api.served(), living(LiveCluster(settings(port=9835), connect(api.kubeconfig(tmp_path)))) as cluster:
        wait_until(lambda: [fact.target for fact in cluster.poller.facts()] == ["[fd00::1]:9835"], SOON, "it is found")


def test_a_node_loses_its_agent_and_gets_it_back(api: LivingApi, tmp_path: Path) -> None:
    api.put("nodes", kube_node("n1", 2))
    api.put("pods", agent_pod("a1", "n1", "127.0.0.1"))
    with (
        FakeAgent(reports(two_gpus("n1"))) as agent,
        api.served(),
        living(LiveCluster(settings(port=agent.port), connect(api.kubeconfig(tmp_path)))) as cluster,
    ):
        until(cluster, lambda view: states(view) == {0: "free", 1: "free"}, "the agent is heard")
        agent.behave = says_nothing
        view = until(cluster, lambda view: not source(view, "agents").ok, "the silent agent is reported")
        assert source(view, "agents").why == "1 of 1 silent: n1"
        assert source(view, "agents").since == pytest.approx(time.time(), abs=SOON)
        api.delete("pods", "uid-a1")
        view = until(cluster, lambda view: states(view) == {0: "unknown", 1: "unknown"}, "it has no agent")
        assert [node.has_agent for node in view.nodes] == [False]
        agent.behave = reports(two_gpus("n1"))
        api.put("pods", agent_pod("a2", "n1", "127.0.0.1"))
        until(cluster, lambda view: states(view) == {0: "free", 1: "free"}, "the new agent is heard")


def test_without_kubernetes_nodes_are_watched() -> None:
    with FakeAgent(reports(two_gpus("n1"))) as one, FakeAgent(says_nothing) as two:
        cluster = LiveCluster(settings(one, two), None, "switched off")
        with living(cluster):
            view = until(cluster, lambda view: view.gpus, "the node is seen")
            assert source(view, "kubernetes") == SourceView(name="kubernetes", ok=False, why="switched off")
            view = until(cluster, lambda view: not source(view, "agents").ok, "the silent agent is reported")
            assert source(view, "agents").why == f"1 of 2 silent: {two.target}"
            assert {node.name for node in view.nodes} == {"n1", two.target}
            began = view.at
            until(cluster, lambda view: view.at > began + 0.5, "time passes in the view")


def test_an_empty_cluster_has_a_view_of_this_moment() -> None:
    with living(LiveCluster(settings(), None)) as cluster:
        first = until(cluster, lambda view: view.sources, "the sources have been checked").at
        view = until(cluster, lambda view: view.at > first + 0.5, "time passes in the view")
        assert (view.nodes, view.pods, missing(view)) == ((), (), {"kubernetes", "agents"})


def test_a_step_of_the_clock_moves_the_answers_of_agents(monkeypatch: pytest.MonkeyPatch) -> None:
    """The wall clock is set, or the process stood still: no agent was silent meanwhile."""
    with FakeAgent(reports(two_gpus("n1"))) as agent, living(LiveCluster(settings(agent), None)) as cluster:
        until(cluster, lambda view: len(view.gpus) == 2, "both GPUs are seen")
        before = _received_at(cluster)
        real = cluster.poller.clock_offset
        monkeypatch.setattr(cluster.poller, "clock_offset", lambda: real() + 3600.0)
        assert _received_at(cluster) - before > 3500.0


def _received_at(cluster: LiveCluster) -> float:
    """When the agent of n1 answered, as the next evaluation sees it."""
    node = cluster.take_update().nodes["n1"]
    received_at = node.agent.received_at if node is not None and node.agent is not None else None
    assert received_at is not None
    return received_at
