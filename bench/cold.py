"""Cost of loading an unknown cluster: `python -m bench.cold WHO DIRECTORY`, one process each.

`ours` decodes the lists of pods and nodes, determines the owner of each pod, joins everything into a view and runs a
few steady cycles. `typed` only creates the Kubernetes client's models from the same bytes. Input are list pages of 500
objects. Seconds are CPU time, because the machine may be shared.
"""

from __future__ import annotations

import gc
import json
import statistics
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from bench.cluster_data import as_list

PAGE = 500
BEATS = 30  # parts into which LiveCluster divides a cycle of 15 s
CYCLES = 5


def pages(directory: Path, resource: str) -> list[bytes]:
    """List pages."""
    items = (directory / resource).read_bytes().splitlines()
    return [as_list(resource, items[start : start + PAGE]) for start in range(0, len(items), PAGE)]


def typed(directory: Path) -> dict[str, float]:
    """Duration of creating the client's models."""
    from kubernetes import client  # imported here: `ours` must do without

    pods, nodes, api = pages(directory, "pods"), pages(directory, "nodes"), client.ApiClient()

    def models(kind: str, lists: list[bytes]) -> list[Any]:
        return [api.deserialize(page.decode(), kind, "application/json") for page in lists]

    pods_took, _pods = _timed(lambda: models("V1PodList", pods))
    nodes_took, _nodes = _timed(lambda: models("V1NodeList", nodes))
    return {"pods": pods_took, "nodes": nodes_took}


def ours(directory: Path) -> dict[str, float]:
    """Our durations, part by part."""
    from monitor.cluster.identity import identify
    from monitor.cluster.owners import no_owners
    from monitor.cluster.platforms import all_rules, required_fields
    from monitor.cluster.view import ViewBuilder
    from monitor.cluster.view_inputs import ClusterContext, ViewInputs
    from monitor.facts.agents import AgentFact
    from monitor.facts.node import NodeSnapshot
    from monitor.kube.decode import stream

    gc.disable()  # as in the daemon: see monitor.base.garbage
    rules, answers = all_rules(), (directory / "snapshots").read_bytes().splitlines()
    kind, read = stream.pods(required_fields(rules)), msgspec.json.Decoder(NodeSnapshot).decode
    pod_pages, node_pages = pages(directory, "pods"), pages(directory, "nodes")
    builder = ViewBuilder(lambda pod: identify(pod, no_owners, rules, {}))

    def agent(answer: bytes) -> AgentFact:
        snapshot = read(answer)
        return AgentFact(target=f"{snapshot.node}:9835", node=snapshot.node, snapshot=snapshot, received_at=snapshot.at)

    answers_took, agents = _timed(lambda: tuple(agent(answer) for answer in answers))
    pods_took, pods = _timed(lambda: tuple(pod for page in pod_pages for pod in kind.page(page).items))
    nodes_took, nodes = _timed(lambda: tuple(node for page in node_pages for node in stream.NODES.page(page).items))
    now = agents[0].snapshot.at + 1 if agents[0].snapshot else 0.0
    inputs = ViewInputs(agents, pods, nodes, ClusterContext(pods_known=True))
    join_took, view = _timed(lambda: builder.build(inputs, now).view())
    if (len(view.pods), len(view.gpus)) != (len(pods) * 92 // 100, len(nodes) * 8):
        raise RuntimeError(f"a view of {len(view.pods)} pods and {len(view.gpus)} cards is not what was given")
    cycles = []
    for number in range(CYCLES):
        again = [_later(agent, number) for agent in agents]
        cycles.append(_timed(partial(_cycle, builder, again, now))[0])
    return {
        "answers": answers_took, "pods": pods_took, "nodes": nodes_took, "join": join_took,
        "cycle": statistics.median(cycles),
        "calls": _calls(partial(_cycle, builder, [_later(agent, CYCLES) for agent in agents], now)),
    }  # fmt: skip


def _later(agent: Any, cycle: int) -> Any:
    """An agent's response in a later cycle, with different container usage and GPU utilisation."""
    replace, snapshot = msgspec.structs.replace, agent.snapshot
    usage = tuple(replace(each, cpu_cores=(each.cpu_cores or 0.0) + cycle + 1) for each in snapshot.container_usage)
    gpus = tuple(replace(each, utilization_ratio=0.1 + cycle / 10) for each in snapshot.gpu.gpus)
    return replace(
        agent, snapshot=replace(snapshot, container_usage=usage, gpu=replace(snapshot.gpu, gpus=gpus))
    )  # fmt: skip


def _cycle(builder: Any, again: list[Any], now: float) -> None:
    """Every agent has responded again and every node is joined again, one part per beat as in LiveCluster."""
    from monitor.cluster.view_inputs import ViewChanges

    for beat in range(BEATS):
        told = tuple(again[beat::BEATS])
        builder.update(ViewChanges(agents=told, again=frozenset(agent.node for agent in told)), now + beat)


def _calls(work: Callable[[], Any]) -> float:
    """Number of function calls and returns: a machine-independent measure of work."""
    count = 0

    def note(_frame: Any, _event: str, _what: Any) -> None:
        nonlocal count
        count += 1

    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
    return float(count)


def _timed(work: Callable[[], Any]) -> tuple[float, Any]:
    began = time.process_time()
    made = work()
    return time.process_time() - began, made


if __name__ == "__main__":
    print(json.dumps({"ours": ours, "typed": typed}[sys.argv[1]](Path(sys.argv[2]))))
