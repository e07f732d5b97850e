"""A malicious agent affects only the data of its own node."""

from __future__ import annotations

import resource
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest

from monitor.cleanup.plan.images import plan_images
from monitor.cleanup.plan.references import References
from monitor.cleanup.policy import ImagePolicy
from monitor.cluster.agents.client import AgentError
from monitor.cluster.agents.poller import AgentPoller
from monitor.cluster.agents.snapshot import decode_snapshot
from monitor.cluster.live import LiveCluster
from monitor.config.lease import pod_namespace
from monitor.detect.engine import detect
from monitor.detect.history import DetectionHistory
from monitor.detect.rule_state import RULE_BROKEN
from monitor.detect.rules import RULES
from monitor.facts.agents import AgentFact
from monitor.facts.cluster import GpuState, Identity
from monitor.facts.storage import DiskFact, ImageCacheFact, ImageFact
from monitor.kube.client import connect
from tests.cleanup.builders import container, kept, names
from tests.cleanup.plan.test_gpus import HOUR, alone, plan
from tests.cluster.agents.polling import polling
from tests.cluster.agents.polling import settings as poll_settings
from tests.cluster.builders import NOW, agent, card, device, node, pod, process
from tests.cluster.living import living, settings, two_gpus, until
from tests.detect.builders_gpu import idle, rule_context
from tests.fuzz.targets_cluster import check_rules, check_snapshot
from tests.security import lies
from tests.security.long_strings import LONG
from tests.support import wait_until
from tests.support.fake_agents import FakeAgent, answers, reports, sends, sends_chunks, trickles
from tests.support.living_api import LivingApi, agent_pod, kube_node

MIB = 1024**2
ENOUGH = 600 * MIB  # allowed growth of a daemon while it polls a malicious agent


# Numbers, sizes and nesting


@pytest.mark.parametrize("number", lies.ABSURD, ids=lambda number: repr(number)[:8])
def test_no_number_breaks_the_view_of_others(number: float) -> None:
    """The snapshot is rejected or handled like any other; facts of another node are unchanged."""
    taken = [path for path in lies.numbers(lies.truth()) if _is_taken(lies.with_value(repr(number), path))]
    check_snapshot(decode_snapshot(lies.with_value(repr(number), *taken)))
    for path in taken[:: 1 + len(taken) // 40]:
        check_snapshot(decode_snapshot(lies.with_value(repr(number), path)))


def _is_taken(body: bytes) -> bool:
    try:
        decode_snapshot(body)
    except AgentError:
        return False
    return True


@pytest.mark.parametrize("written", ["null", '""', "[]", f'"/{LONG}"'], ids=["missing", "empty", "empty list", "long"])
def test_no_missing_empty_or_long_value_breaks_a_rule_or_a_label(written: str) -> None:
    """Each value of a snapshot in turn, as far as such a snapshot is accepted."""
    lied = [lies.with_value(written, path) for path in lies.values(lies.truth())]
    taken = [body for body in lied if _is_taken(body)]
    assert len(taken) > 20
    for body in taken:
        check_rules(decode_snapshot(body))


@pytest.mark.parametrize("written", lies.NO_NUMBERS)
def test_what_is_no_number_is_no_snapshot(written: str) -> None:
    for path in lies.numbers(lies.truth()):
        with pytest.raises(AgentError):
            decode_snapshot(lies.with_value(written, path))


@pytest.mark.parametrize(
    ("part", "item", "most"),
    [
        ("gpu", '{"index":1}', 256), ("containers", '{"id":"a","runtime":"","state":""}', 50_000),
        ("gpu_processes", '{"gpu_uuid":"G","pid":1,"kind":"compute"}', 50_000),
        ("probes", '{"target":"t","ok":false,"at":1.0}', 256),
        ("mounts", '{"path":"/a","state":"hung","since":1.0}', 256),
    ],
)  # fmt: skip
def test_a_million_of_something_is_no_snapshot(part: str, item: str, most: int) -> None:
    assert decode_snapshot(lies.many(part, item, most)).node == "n1"
    with pytest.raises(AgentError, match=f"length <= {most}"):
        decode_snapshot(lies.many(part, item, min(most * 20, 200_000)))


@pytest.mark.parametrize("body", [b"[" * 3_000_000, b'{"node":' * 900_000, b'{"x":' + b"[" * 100_000 + b"]" * 100_000])
def test_depth_is_no_snapshot(body: bytes) -> None:
    with pytest.raises(AgentError):
        decode_snapshot(body)


@pytest.mark.parametrize(
    ("behave", "error"),
    [(sends(100), "more than 8 MiB"), (sends_chunks(100), "more than 8 MiB"), (trickles, "no complete answer within")],
    ids=["100 MB", "in chunks", "slowly"],
)
def test_a_body_without_end_costs_neither_memory_nor_others(behave: Any, error: str) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with FakeAgent(behave) as liar, FakeAgent(reports("n2")) as honest:
        poller = AgentPoller(poll_settings(), lambda: {liar.target: "n1", honest.target: "n2"})
        with polling(poller):
            wait_until(lambda: _failures(poller, "n1") > 1, 10, "the liar was asked twice")
            wait_until(lambda: len(honest.asked) > 2, 5, "the other one is still asked")
            assert _failures(poller, "n2") == 0
            assert error in (_fact(poller, liar).error or "")
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024 < ENOUGH


def _failures(poller: AgentPoller, name: str) -> int:
    return next((fact.failures for fact in poller.facts() if fact.node == name), 0)


# Identity


def test_it_cannot_be_another_node_where_kubernetes_says_who_it_is(tmp_path: Path) -> None:
    """n1's agent reports as n2 with two more GPUs: they are attributed to n1, and n2 stays silent."""
    api = LivingApi()
    for name in ("n1", "n2"):
        api.put("nodes", kube_node(name, 2))
    api.put("pods", agent_pod("a1", "n1", "127.0.0.1"))
    with (
        FakeAgent(reports(two_gpus("n2"))) as liar,
        api.served(),
        living(LiveCluster(settings(port=liar.port), connect(api.kubeconfig(tmp_path)))) as cluster,
    ):
        view = until(cluster, lambda view: any(gpu.state is GpuState.FREE for gpu in view.gpus), "the liar is heard")
        assert {gpu.node: gpu.state for gpu in view.gpus} == {"n1": GpuState.FREE, "n2": GpuState.UNKNOWN}
        assert {each.name: each.has_agent for each in view.nodes} == {"n1": True, "n2": False}
        (fact,) = cluster.poller.facts()
        assert fact.snapshot is not None
        assert (fact.node, fact.snapshot.node) == ("n1", "n1")


def test_nor_take_a_name_that_another_agent_has() -> None:
    with FakeAgent(reports("n1")) as honest, FakeAgent(reports("n9")) as liar:
        poller = AgentPoller(poll_settings(), lambda: dict.fromkeys((honest.target, liar.target)))
        with polling(poller):
            wait_until(lambda: {fact.node for fact in poller.facts()} == {"n1", "n9"}, 5, "both have spoken")
            liar.behave = reports("n1")
            wait_until(lambda: _fact(poller, liar).failures, 5, "the lie was heard")
            assert _fact(poller, liar).error == f"says that it is on the node of {honest.target}"
            assert _fact(poller, liar).node == "n9"
            assert (_fact(poller, honest).node, _fact(poller, honest).failures) == ("n1", 0)


def _fact(poller: AgentPoller, one: FakeAgent) -> AgentFact:
    return next(fact for fact in poller.facts() if fact.target == one.target)


def test_a_pod_of_a_tenant_with_the_label_of_agents_gets_no_token(tmp_path: Path) -> None:
    """Any tenant can label pods: only pods in the agents' namespace are polled."""
    api = LivingApi()
    api.put("nodes", kube_node("n1", 2))
    api.put("pods", agent_pod("tenant", "n1", "127.0.0.1"))
    given = settings(port=1)
    elsewhere = type(given)(**(vars(given) | {"agent_namespace": "gpuwarden"}))
    with api.served(), living(LiveCluster(elsewhere, connect(api.kubeconfig(tmp_path)))) as cluster:
        until(cluster, lambda view: view.pods, "the pod is seen")
        cluster.poller.update_targets()
        assert cluster.poller.facts() == ()
    own = tmp_path / "namespace"
    own.write_text("gpuwarden\n")
    assert (pod_namespace(str(own)), pod_namespace(str(tmp_path / "none"))) == ("gpuwarden", None)


# Deletions


def test_no_pod_of_another_node_is_evicted_by_its_word() -> None:
    """n1 claims that pods of n2, of no node and of its own hold idle GPUs: only its own are eligible."""
    mine, others, waiting = alone("mine"), alone("others", node="n2"), alone("waiting", node=None)
    whose = {each.uid: Identity(user="alice", job=each.name) for each in (mine, others, waiting)}
    cards = [card(n, power_watts=60.0, power_limit_watts=400.0) for n in range(3)]
    devices = (device(mine, 0), device(others, 1), device(waiting, 2))
    witness = agent(*cards, devices=devices, containers=())
    given = rule_context(witness, pods=(mine, others, waiting), memory=idle(9000, 0, 1, 2), identities=whose)
    found = plan(given, idle_after=HOUR)
    assert names(found) == ["team/mine"]
    assert kept(found) == {"team/others": "unknown", "team/waiting": "unknown"}


def test_nor_one_that_ended_there() -> None:
    """n1 claims that a container of a pod that ended on n2 still runs on its GPU: the pod stays."""
    ended = pod("ended", node="n2", phase="Succeeded")
    left = process(100, container_id="id-c1", pod_uid=ended.uid, started_at=NOW - 9000)
    witness = agent(card(), processes=(left,), containers=(container("c1", pod_uid=ended.uid),))
    found = plan(rule_context(witness, pods=(ended,)), zombie_after=0.0)
    assert names(found) == []
    assert kept(found) == {"team/ended": "unknown"}


def test_no_image_of_another_node_is_removed_by_its_word() -> None:
    """n1's agent reports as n2 with a disk full of old images: all planned actions target n1."""
    images = ImageCacheFact(
        runtime="docker", root="/var/lib/docker",
        images=(ImageFact(id="sha256:1", names=("a:1",), size_bytes=10**9, unique_bytes=10**9, created_at=1.0,
            first_seen_at=1.0, last_used_at=1.0),),
    )  # fmt: skip
    disk = DiskFact(
        mount="/", device="/dev/sda", fstype="ext4", roles=("system", "runtime"), size_bytes=10**12,
        used_bytes=99 * 10**10, available_bytes=10**10,
    )  # fmt: skip
    lie = agent(node="n2", at=time.time(), images=(images,), disk=(disk,), containers=()).snapshot
    assert lie is not None
    with FakeAgent(reports(lie)) as liar:
        poller = AgentPoller(poll_settings(), lambda: {liar.target: "n1"})
        with polling(poller):
            wait_until(lambda: poller.facts()[0].snapshot is not None if poller.facts() else False, 5, "it was heard")
            told = poller.facts()[0].snapshot
    assert told is not None
    found = plan_images(ImagePolicy(name="i"), told, References({}), time.time())
    assert [(item.name, item.node) for item in found.items] == [("a:1", "n1")]
    assert found.node == "n1"


# Volume


def test_what_it_shouts_is_of_its_own_node() -> None:
    """The agent of n1 reports as n2 that all of 256 GPUs are broken: no finding names n2."""
    cards = [card(n, temperature_celsius=200.0, lost=True) for n in range(256)]
    lie = agent(*cards, node="n2", processes=tuple(process(n, n % 256, state="D") for n in range(1000))).snapshot
    assert lie is not None
    with FakeAgent(reports(lie)) as liar:
        poller = AgentPoller(poll_settings(), lambda: {liar.target: "n1"})
        with polling(poller):
            wait_until(lambda: poller.facts() and poller.facts()[0].snapshot, 5, "it was heard")
            (told,) = poller.facts()
    assert told.snapshot is not None
    shouting = msgspec.structs.replace(
        told, received_at=NOW - 1, snapshot=msgspec.structs.replace(told.snapshot, at=NOW - 1)
    )
    quiet = agent(card(0, "n2"), node="n2")
    given = rule_context(shouting, quiet, pods=(), nodes=(node("n1"), node("n2")))
    found = detect(RULES, {}, given, DetectionHistory()).findings
    assert len([each for each in found if each.labels.get("node") == "n1"]) >= 256
    assert [each for each in found if each.labels.get("node") == "n2"] == []
    assert RULE_BROKEN not in {each.cause for each in found}


def test_an_answer_that_is_no_snapshot_is_not_repeated_in_the_error() -> None:
    secret = "planted-by-a-liar"
    with FakeAgent(answers(f'{{"node": "{secret}", "at": "{secret}"}}'.encode())) as liar:
        poller = AgentPoller(poll_settings(), lambda: {liar.target: "n1"})
        with polling(poller):
            wait_until(lambda: _failures(poller, "n1"), 5, "it was heard")
            assert secret not in (poller.facts()[0].error or "")
