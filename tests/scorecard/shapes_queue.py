"""Pending jobs: waiting for GPUs, for a single node, or for quota. Each needs the whole cluster."""

from __future__ import annotations

from collections.abc import Iterator

from monitor.sim.manifests import GPU_RESOURCE
from monitor.sim.node import SimNode
from tests.scorecard.model import EVERYWHERE, Act, Happening, Shape, Tell

Wait = Iterator[float | None]
MINUTE = 60.0
LASTS = 16 * MINUTE
JOB = {"namespace": "nlp", "job": "{id}"}
NO_ROOM = f"0/8 nodes are available: 8 Insufficient {GPU_RESOURCE}."


def _stand_still(it: Happening) -> None:
    it.scene.full_until = it.end + 2 * MINUTE
    it.scene.keep_work(it.scene.full_until)


def _fill(it: Happening, node: SimNode, leave: int = 0) -> None:
    """Allocate all but a few of a node's free GPUs."""
    if gpus := len(node.free_gpu_indexes()) - leave:
        it.job(gpus, more=f"-fill-{node.name}", node=node.name)


def _no_gpus(it: Happening) -> Wait:
    _stand_still(it)
    for node in it.scene.nodes:
        _fill(it, node)
    it.waits(2, NO_ROOM)
    yield None


def _scattered(it: Happening) -> Wait:
    """More than enough free GPUs, but on several nodes."""
    _stand_still(it)
    for node in it.scene.nodes:
        if len(node.free_gpu_indexes()) == len(node.gpus):
            it.job(1, more=f"-one-{node.name}", node=node.name)
    it.waits(8, NO_ROOM)
    yield None


def _too_large(it: Happening) -> Wait:
    _stand_still(it)
    it.waits(16, NO_ROOM)
    yield None


def _overtaken(it: Happening) -> Wait:
    """A job waits for four GPUs; three become free, and a later job gets them."""
    _stand_still(it)
    first = it.job(3, more="-first")
    _fill(it, it.node, leave=1)
    for node in it.scene.nodes:
        if node is not it.node:
            _fill(it, node)
    it.waits(4, NO_ROOM)
    yield 20.0
    it.scene.withdraw(first)
    it.job(3, more="-later")
    yield None


def _wrong_selector(it: Happening) -> Wait:
    said = "0/8 nodes are available: 8 node(s) didn't match Pod's node affinity/selector."
    it.waits(1, said, nodeSelector={"gpu-model": "H100"})
    yield None


def _quota(it: Happening) -> Wait:
    """A namespace has exhausted its quota and requests more."""
    name, key = f"quota-{it.id}", f"requests.{GPU_RESOURCE}"
    amounts = {key: "8"}
    meta = {"name": name, "namespace": f"team-{it.id}", "uid": name}
    item = {"metadata": meta, "spec": {"hard": amounts}, "status": {"hard": amounts, "used": amounts}}
    it.put("resourcequotas", item, name)
    said = f'pods "x" is forbidden: exceeded quota: {name}, requested: {key}=2, used: {key}=8, limited: {key}=8'
    it.scene.refuse(f"team-{it.id}", f"train-{it.id}", f"Error creating: {said}")
    yield None


def _queue(*, closed: bool = False) -> Act:
    """A full or closed Volcano queue."""

    def act(it: Happening) -> Wait:
        name = f"queue-{it.id}"
        item = {
            "metadata": {"name": name, "uid": name},
            "spec": {"capability": {GPU_RESOURCE: "8"}},
            "status": {"state": "Closed" if closed else "Open", "allocated": {GPU_RESOURCE: "2" if closed else "8"}},
        }
        it.put("queues.scheduling.volcano.sh", item, name)
        labels = {"volcano.sh/job-name": it.id, "volcano.sh/queue-name": name}
        uid = it.scene.waiting_pod(it.work(2), "queue", schedulerName="volcano")
        pod = it.scene.objects.get("pods", uid)
        it.put("pods", pod | {"metadata": pod["metadata"] | {"labels": labels}}, uid)
        yield None

    return act


PENDING = Tell("pod-pending", "not-enough-gpus", JOB)
SHAPES = (
    Shape("no free GPUs", ("P4",), LASTS, _no_gpus, (PENDING,), (), (EVERYWHERE,)),
    Shape(
        "free GPUs on several nodes", ("G5", "P4", "P5"), LASTS, _scattered,
        (Tell("pod-pending", "no-single-node-fits", JOB), Tell("gpu-fragmented", "gpu-fragmented", JOB)), (),
        (EVERYWHERE,),
    ),
    Shape("job larger than a node", ("P4", "P5"), LASTS, _too_large,
          (Tell("pod-pending", "no-single-node-fits", JOB),), (), (EVERYWHERE,)),
    Shape("later job overtakes", ("P4", "P6"), LASTS, _overtaken, (Tell("pod-pending", "overtaken", JOB),), (),
          (EVERYWHERE,)),
    Shape("no node of the kind", ("P4",), LASTS, _wrong_selector, (Tell("pod-pending", "selector", JOB),), (), (),
          False),
    Shape("quota of a namespace", ("P6",), 8 * MINUTE, _quota,
          (Tell("quota-exhausted", "quota-exhausted", {"namespace": "team-{id}"}),), (), (), False),
    Shape("queue at its limit", ("P6", "P4"), LASTS, _queue(), (
        Tell("pod-pending", "quota", JOB), Tell("quota-exhausted", "quota-exhausted", {"queue": "queue-{id}"}),
    ), (), (), False),
    Shape("queue closed", ("P6", "P4"), LASTS, _queue(closed=True), (Tell("pod-pending", "queue-closed", JOB),), (), (),
          False),
)  # fmt: skip
