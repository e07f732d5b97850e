from __future__ import annotations

from typing import Any

import pytest

from monitor.explain.error_chain.causes import PullFailureCause
from monitor.explain.keys import Key
from monitor.explain.pod import explain_pod
from monitor.facts.agents import AgentFact
from monitor.facts.facts_index import make_cluster_facts
from monitor.facts.kube import PodContainerFact, PodFact
from monitor.facts.storage import ImageCacheFact, ImageFact, ProbeFact
from tests.explain.builders import (
    GIB,
    IMAGE,
    NOW,
    Case,
    agent,
    check,
    english,
    event,
    names,
    node,
    pod,
    running_container,
    waiting,
)

REFUSED = (
    f'Failed to pull image "{IMAGE}": rpc error: code = Unknown desc = failed to pull and unpack image "{IMAGE}": '
    f'failed to resolve reference "{IMAGE}": failed to do request: Head "https://harbor.lab/v2/nlp/bert/manifests/1": '
    "dial tcp 10.0.0.5:443: connect: connection refused"
)
BACK_OFF = f'Back-off pulling image "{IMAGE}"'


def stuck(name: str = "bert-0", node_name: str = "gpu-01", image: str = IMAGE, **more: Any) -> PodFact:
    fields: dict[str, Any] = {
        "node": node_name,
        "statuses": (waiting("ImagePullBackOff", BACK_OFF),),
        "containers": (PodContainerFact(name="main", image=image),),
    }
    return pod(name, **(fields | more))


def probing(node_name: str, ok: bool, target: str = "https://harbor.lab") -> AgentFact:
    probe = ProbeFact(target=target, ok=ok, at=NOW, stage=None if ok else "dns", cause=None if ok else "no-such-host")
    return agent(node_name, probes=(probe,))


def caching(node_name: str) -> AgentFact:
    image = ImageFact(id="sha256:1", names=(IMAGE,), size_bytes=59 * GIB)
    return agent(node_name, images=(ImageCacheFact(runtime="docker", images=(image,)),))


FAILED = [event("Failed", REFUSED, count=12), event("Failed", "Error: ImagePullBackOff", ago=10)]
MISSING = [event("Failed", f'Failed to pull image "{IMAGE}": manifest unknown', ago=30)]
HERE = {"nodes": [node("gpu-01"), node("gpu-02")]}

CASES = [
    Case(
        "refused: the event tells what the status does not",
        stuck(),
        "pull-connection-refused",
        says=(
            "harbor.lab refuses connections from gpu-01",
            "curl -v https://harbor.lab/v2/",
            "The runtime says: Failed to pull",
            "The pull was tried 12 times.",
        ),
        facts=HERE | {"events": FAILED},
    ),
    Case(
        "the status tells by itself since 1.32",
        stuck(statuses=(waiting("ImagePullBackOff", f'Back-off pulling image "{IMAGE}": ErrImagePull: {REFUSED}'),)),
        "pull-connection-refused",
        facts=HERE,
    ),
    Case(
        "the newest event counts",
        stuck(),
        "pull-not-found",
        says=(f"The image {IMAGE} does not exist in harbor.lab.",),
        facts=HERE | {"events": [event("Failed", REFUSED, ago=600), *MISSING]},
    ),
    Case(
        "another container's failure is not this one's",
        stuck(),
        "pull-unknown",
        facts=HERE | {"events": [event("Failed", REFUSED, container="sidecar")]},
    ),
    Case(
        "an earlier pod of the same name is another pod",
        stuck(),
        "pull-unknown",
        facts=HERE | {"events": [event("Failed", REFUSED, involved_uid="uid-before")]},
    ),
    Case(
        "only this node cannot reach the registry",
        stuck(),
        "pull-connection-refused",
        says=("Only gpu-01 cannot reach harbor.lab (no-such-host); 2 other nodes can: the fault is on this node.",),
        facts=HERE
        | {"events": FAILED, "agents": [probing("gpu-01", False), probing("gpu-02", True), probing("gpu-03", True)]},
    ),
    Case(
        "others cannot either",
        stuck(),
        "pull-connection-refused",
        says=(
            "The agent's probe from gpu-01 to harbor.lab fails too: no-such-host.",
            "Of 2 other nodes, 1 can reach harbor.lab.",
        ),
        silent=("the fault is on this node",),
        facts=HERE
        | {"events": FAILED, "agents": [probing("gpu-01", False), probing("gpu-02", False), probing("gpu-03", True)]},
    ),
    Case(
        "right now it does reach it",
        stuck(),
        "pull-connection-refused",
        says=("At the moment gpu-01 can reach harbor.lab.",),
        silent=("other node",),
        facts=HERE | {"events": FAILED, "agents": [probing("gpu-01", True)]},
    ),
    Case(
        "a probe of another registry says nothing",
        stuck(),
        "pull-connection-refused",
        silent=("probe", "reach"),
        facts=HERE | {"events": FAILED, "agents": [probing("gpu-01", False, "https://hub.lab")]},
    ),
    Case(
        "many images on one node: the node",
        stuck(),
        "pull-connection-refused",
        says=("3 different images fail on gpu-01: check the node first",),
        silent=("check the registry",),
        facts=HERE | {"events": FAILED, "pods": [stuck("a", image="hub.lab/a:1"), stuck("b", image="hub.lab/b:1")]},
    ),
    Case(
        "one registry on many nodes: the registry",
        stuck(),
        "pull-connection-refused",
        says=("Pulls from harbor.lab fail on 2 nodes: check the registry first",),
        silent=("check the node",),
        facts=HERE | {"events": FAILED, "pods": [stuck("a", "gpu-02", "harbor.lab/cv/yolo:3")]},
    ),
    Case(
        "one image everywhere: the name or the rights",
        stuck(),
        "pull-not-found",
        says=("This image fails on 3 nodes: its name is wrong",),
        silent=("check the registry",),
        facts=HERE | {"events": MISSING, "pods": [stuck("a", "gpu-02"), stuck("b", "gpu-03")]},
    ),
    Case(
        "one image everywhere, refused: its name is not to blame",
        stuck(),
        "pull-connection-refused",
        says=("Pulls from harbor.lab fail on 3 nodes: check the registry first",),
        silent=("its name",),
        facts=HERE | {"events": FAILED, "pods": [stuck("a", "gpu-02"), stuck("b", "gpu-03")]},
    ),
    Case(
        "a wrong name on a node where other names are wrong too: not the node",
        stuck(),
        "pull-not-found",
        silent=("check the node",),
        facts=HERE | {"events": MISSING, "pods": [stuck("a", image="hub.lab/a:1")]},
    ),
    Case(
        "no right, and the credentials do not exist",
        stuck(),
        "pull-unauthorized",
        says=(
            "denies gpu-01 access",
            "or the repository",
            "The image pull credentials of the pod do not exist in team-a",
        ),
        facts=HERE
        | {
            "events": [
                event(
                    "FailedToRetrieveImagePullSecret",
                    "Unable to retrieve some image pull secrets (harbor-login)",
                    ago=90,
                ),
                event("Failed", f'Failed to pull image "{IMAGE}": unauthorized: authentication required'),
            ]
        },
    ),
    Case(
        "another node has the image already",
        stuck(),
        "pull-connection-refused",
        says=("1 node already has this image: gpu-02",),
        facts=HERE | {"events": FAILED, "agents": [caching("gpu-02")]},
    ),
    Case(
        "the runtime is down, not the registry",
        stuck(
            statuses=(waiting("ErrImagePull", "rpc error: code = Unavailable desc = error reading from server: EOF"),)
        ),
        "pull-runtime-down",
        says=("The container runtime of gpu-01 does not respond, so", "systemctl status containerd docker"),
        facts=HERE,
    ),
    Case(
        "an init container's image",
        stuck(statuses=(waiting("ErrImagePull", REFUSED, name="fetch", init=True), waiting("PodInitializing"))),
        "pull-connection-refused",
        facts=HERE,
    ),
    Case(
        "a pull that goes on",
        pod(node="gpu-01", statuses=(waiting("ContainerCreating"),)),
        "pull-slow",
        says=(f"gpu-01 has been pulling image {IMAGE} for 14 min.", f"{IMAGE} is 59 GiB."),
        facts=HERE
        | {
            "events": [event("Pulling", f'Pulling image "{IMAGE}"', ago=840, type="Normal")],
            "agents": [caching("gpu-02")],
        },
    ),
    Case(
        "a pull of 299 s is not slow",
        pod(node="gpu-01", statuses=(waiting("ContainerCreating"),)),
        "pulling",
        silent=("Slow",),
        facts=HERE | {"events": [event("Pulling", f'Pulling image "{IMAGE}"', ago=299, type="Normal")]},
    ),
]


@pytest.mark.parametrize("case", CASES, ids=names(CASES))
def test_pull(case: Case) -> None:
    check(case, "pulling")


@pytest.mark.parametrize("cause", list(PullFailureCause))
def test_every_cause_has_its_sentence_and_advice(cause: PullFailureCause) -> None:
    assert {f"PULL_{cause.name}", f"PULL_{cause.name}_ADVICE"} <= set(Key.__members__)


def test_a_pull_that_is_over_is_no_pull() -> None:
    pulled = [event("Pulling", f'Pulling image "{IMAGE}"', ago=60), event("Pulled", "Successfully pulled", ago=30)]
    case = Case(
        "creating",
        pod(node="gpu-01", statuses=(waiting("ContainerCreating"),), age=60),
        "starting",
        status="creating",
        facts=HERE | {"events": pulled},
    )
    check(case)


def test_one_running_container_does_not_hide_another_ones_image() -> None:
    both = stuck(statuses=(running_container(name="sidecar"), waiting("ImagePullBackOff", BACK_OFF)), phase="Pending")
    check(Case("both", both, "pull-connection-refused", status="pulling", facts=HERE | {"events": FAILED}))


def test_a_revoked_account_and_a_dead_proxy_are_shared() -> None:
    def failing(name: str, node_name: str, image: str, message: str) -> PodFact:
        containers = (PodContainerFact(name="main", image=image),)
        return pod(name, node=node_name, containers=containers, statuses=(waiting("ErrImagePull", message),))

    denied = (
        "failed to authorize: unexpected status from GET request to https://harbor.lab/service/token: 401 Unauthorized"
    )
    proxy = 'Head "https://quay.io/v2/": proxyconnect tcp: dial tcp 10.0.0.8:3128: connect: connection refused'
    pods = [
        failing("a", "gpu-01", "harbor.lab/nlp/a:1", denied),
        failing("b", "gpu-02", "harbor.lab/cv/b:1", denied),
        failing("c", "gpu-01", "quay.io/x/c:1", proxy),
        failing("d", "gpu-02", "quay.io/x/d:1", proxy),
    ]
    facts = make_cluster_facts(pods=pods, nodes=[node("gpu-01"), node("gpu-02")])
    said = [english(explain_pod(each, facts, NOW)) for each in pods]
    assert "2 different images of harbor.lab are denied" in said[0]
    assert "Pulls through 10.0.0.8:3128 fail on 2 nodes" in said[2]
    assert "check the registry first" not in said[2]
