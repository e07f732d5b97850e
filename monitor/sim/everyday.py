"""Everyday workloads of the simulated cluster."""

from __future__ import annotations

import random

from monitor.sim.cluster import SimCluster
from monitor.sim.manifests import Workload
from monitor.sim.node import GIB
from monitor.sim.outages import image

USERS = (("zhang", "nlp"), ("li", "vision"), ("wang", "speech"), ("zhao", "nlp"), ("chen", "vision"), ("liu", "rl"))
MODELS = ("bert", "resnet", "whisper", "llama", "vit", "ppo")
MIN_FREE_RATIO = 0.3  # no submissions with fewer free GPUs
HOUR_SECONDS = 3600.0
LONG_AGES_HOURS = (72, 240)  # of the first pod of each node, which outlives the demo
SHORT_AGES_HOURS = (0.5, 9)


def fill_cluster(cluster: SimCluster) -> None:
    """Fill the cluster as on an ordinary day: most nodes partly used, some unused images."""
    now, ages = cluster.clock(), random.Random(5)  # noqa: S311  # no secret
    for number, node in enumerate(cluster.nodes.values()):
        node.add_image(image("base", "pytorch:2.3"), 18 * GIB, now, now - 3600)
        node.add_image(image("base", "tensorflow:2.15"), 14 * GIB, now, now - 6 * 86400)
        sizes = ((4, 1), (2, 1, 1), (4, 2), (1, 1, 2), (4, 1, 1), (2, 2, 1))[number % 6]
        for place, size in enumerate(sizes):
            hours = ages.uniform(*(SHORT_AGES_HOURS if place else LONG_AGES_HOURS))
            _submit(cluster, size, node.name, hours * HOUR_SECONDS, outlives=not place)


def churn(cluster: SimCluster) -> None:
    """Occasionally submit a pod that finishes after some minutes, if there is room, and delete finished pods."""
    gpus = sum(len(node.gpus) for node in cluster.nodes.values())
    free = sum(len(node.free_gpu_indexes()) for node in cluster.nodes.values())
    if free > gpus * MIN_FREE_RATIO and cluster.chance.random() < 0.02:
        _submit(cluster, cluster.chance.choice((1, 1, 2)))
    if cluster.chance.random() < 0.01:
        _delete_finished(cluster)


def _submit(
    cluster: SimCluster, gpus: int, node: str | None = None, age: float = 0.0, *, outlives: bool = False
) -> None:
    user, team = cluster.chance.choice(USERS)
    model, number = cluster.chance.choice(MODELS), cluster.chance.randrange(1000)
    workload = Workload(
        f"{model}-{number:03d}-0", team, user, f"vc-{team}", gpus, image(team, f"{model}:{number % 7}"),
        busy=cluster.chance.uniform(0.55, 0.97),
    )  # fmt: skip
    if not any(pod.work.name == workload.name and pod.work.namespace == team for pod in cluster.pods.values()):
        lasts = cluster.chance.uniform(240, 1500)
        cluster.submit(workload, node=node, lasts=None if outlives else lasts, age=age)


def _delete_finished(cluster: SimCluster) -> None:
    for pod in list(cluster.pods.values()):
        if cluster.pod_object(pod)["status"]["phase"] == "Succeeded" and not pod.gone_at:
            zombie = pod.node and any(process.pod_uid == pod.uid for process in cluster.nodes[pod.node].processes)
            if not zombie:
                cluster.delete_pod(pod.work.namespace, pod.work.name, 0)
