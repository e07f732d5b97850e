"""Everyday work in the simulated cluster: who trains what, jobs that end, jobs that come."""

from __future__ import annotations

from monitor.sim.cluster import SimCluster
from monitor.sim.manifests import Workload
from monitor.sim.node import GIB
from monitor.sim.outages import image

USERS = (("zhang", "nlp"), ("li", "vision"), ("wang", "speech"), ("zhao", "nlp"), ("chen", "vision"), ("liu", "rl"))
MODELS = ("bert", "resnet", "whisper", "llama", "vit", "ppo")
MIN_FREE_RATIO = 0.3  # of the cards; below that nobody submits


def fill_cluster(cluster: SimCluster) -> None:
    """Fill the cluster as on an ordinary morning: most nodes partly used, some images left behind."""
    now = cluster.clock()
    for number, node in enumerate(cluster.nodes.values()):
        node.add_image(image("base", "pytorch:2.3"), 18 * GIB, now, now - 3600)
        node.add_image(image("base", "tensorflow:2.15"), 14 * GIB, now, now - 6 * 86400)
        for size in ((4, 1), (2, 1, 1), (4, 2), (1, 1, 2), (4, 1, 1), (2, 2, 1))[number % 6]:
            _submit(cluster, size, node.name)


def churn(cluster: SimCluster) -> None:
    """Now and then somebody submits something, where there is room for it; it ends after some minutes."""
    cards = sum(len(node.cards) for node in cluster.nodes.values())
    free = sum(len(node.free_gpu_indexes()) for node in cluster.nodes.values())
    if free > cards * MIN_FREE_RATIO and cluster.chance.random() < 0.02:
        _submit(cluster, cluster.chance.choice((1, 1, 2)))
    if cluster.chance.random() < 0.01:
        _tidy(cluster)


def _submit(cluster: SimCluster, gpus: int, node: str | None = None) -> None:
    user, team = cluster.chance.choice(USERS)
    model, number = cluster.chance.choice(MODELS), cluster.chance.randrange(1000)
    work = Workload(
        f"{model}-{number:03d}-0", team, user, f"vc-{team}", gpus, image(team, f"{model}:{number % 7}"),
        busy=cluster.chance.uniform(0.55, 0.97),
    )  # fmt: skip
    if not any(pod.work.name == work.name and pod.work.namespace == team for pod in cluster.pods.values()):
        cluster.submit(work, node=node, lasts=cluster.chance.uniform(240, 1500))


def _tidy(cluster: SimCluster) -> None:
    """Delete the finished pods, as their users do."""
    for pod in list(cluster.pods.values()):
        if cluster.shown(pod)["status"]["phase"] == "Succeeded" and not pod.gone_at:
            zombie = pod.node and any(each.pod_uid == pod.uid for each in cluster.nodes[pod.node].processes)
            if not zombie:
                cluster.delete_pod(pod.work.namespace, pod.work.name, 0)
