"""Plans of user actions, in both languages."""

from __future__ import annotations

from typing import Any

import pytest

from monitor.actions.plan import (
    Cordon,
    DeletePods,
    PodName,
    ReleaseGpu,
    Uncordon,
    UserActionContext,
    plan_cordon,
    plan_deletion,
    plan_release,
    render_plan,
)
from monitor.cleanup.model import CleanupPlan, Item, Mode, PodWrite, Risk
from monitor.facts.actions import KillProcess
from monitor.facts.cluster import ClusterView, GpuState, GpuView, Holder, Identity, NodeView
from monitor.facts.kube import OwnerRef, PodFact
from monitor.facts.text import Text

NOW = 1000.0


def pod(name: str, **more: Any) -> PodFact:
    return PodFact(**{"uid": f"u-{name}", "name": name, "namespace": "nlp", "node": "gpu01", "phase": "Running"} | more)


PODS = (
    pod("bert"),
    pod("waits", node=None, phase="Pending"),
    pod("over", phase="Succeeded"),
    pod("served", owner=OwnerRef(kind="ReplicaSet", name="web-1")),
    pod("going", deletion_at=NOW),
    pod("proxy", namespace="kube-system"),
)
HELD = tuple(
    GpuView(node="gpu01", index=index, state=GpuState.BUSY, holders=(Holder(pod_uid="u-bert", live=True),))
    for index in range(2)
)
NODES = (
    NodeView(name="gpu01", in_kubernetes=True, free=6),
    NodeView(name="gpu02", in_kubernetes=True, schedulable=False, free=8),
    NodeView(name="desk", in_kubernetes=False),
)
CONTEXT = UserActionContext(
    ClusterView(at=NOW, gpus=HELD, nodes=NODES), PODS, {each.uid: Identity(user="zhang") for each in PODS[:3]}
)


def deletion(*names: str, **more: Any) -> DeletePods:
    return DeletePods(pods=tuple(PodName(namespace="nlp", name=name, **more) for name in names))


DELETIONS: list[tuple[str, str, str, list[str]]] = [
    (
        "bert",
        "Delete pod nlp/bert of zhang on gpu01: graceful termination, then it is killed. This frees 2 GPUs of gpu01.",
        "删除 zhang 在 gpu01 上的 Pod nlp/bert：先通知它退出，超时则强行停止。将释放 gpu01 的 2 张 GPU。",
        [],
    ),
    (
        "waits",
        "Delete pod nlp/waits of zhang, which has no node yet.",
        "删除 zhang 的 Pod nlp/waits，它还没有分配到节点。",
        [],
    ),
    (
        "over",
        "Delete pod nlp/over of zhang, which has already finished (Succeeded).",
        "删除 zhang 的 Pod nlp/over，它已经结束（Succeeded）。",
        [],
    ),
    (
        "served",
        "Delete pod nlp/served of an unknown user on gpu01: graceful termination, then it is killed.",
        "删除 未知用户 在 gpu01 上的 Pod nlp/served：先通知它退出，超时则强行停止。",
        ["ReplicaSet web-1 will probably start a replacement for nlp/served."],
    ),
    (
        "going",
        "Delete pod nlp/going of an unknown user on gpu01: graceful termination, then it is killed.",
        "删除 未知用户 在 gpu01 上的 Pod nlp/going：先通知它退出，超时则强行停止。",
        ["nlp/going is already being deleted."],
    ),
    (
        "never-was",
        "Pod nlp/never-was no longer exists: no action.",
        "Pod nlp/never-was 已经不存在，不做任何操作。",
        [],
    ),
]


@pytest.mark.parametrize(("name", "english", "chinese", "warnings"), DELETIONS, ids=[row[0] for row in DELETIONS])
def test_what_a_deletion_does(name: str, english: str, chinese: str, warnings: list[str]) -> None:
    plan = plan_deletion(deletion(name), CONTEXT)
    (step,) = render_plan(plan, "en", dry_run=True).steps
    assert (step.text, list(step.warnings)) == (english, warnings)
    assert render_plan(plan, "zh", dry_run=True).steps[0].text == chinese


def test_what_belongs_to_the_system_is_said() -> None:
    action = DeletePods(pods=(PodName(namespace="kube-system", name="proxy"),))
    (step,) = render_plan(plan_deletion(action, CONTEXT), "en", dry_run=True).steps
    assert step.warnings == ("kube-system/proxy is a system pod (kube-system).",)


def test_a_pod_is_known_by_its_uid_and_named_once() -> None:
    assert [step.kind for step in plan_deletion(deletion("bert", uid="u-bert"), CONTEXT).steps] == ["delete"]
    assert [step.kind for step in plan_deletion(deletion("bert", uid="u-older"), CONTEXT).steps] == ["gone"]
    assert len(plan_deletion(deletion("bert", "bert"), CONTEXT).steps) == 1


def test_a_plan_is_the_same_as_long_as_its_steps_are() -> None:
    one = plan_deletion(deletion("bert", "over"), CONTEXT).digest
    assert plan_deletion(deletion("over", "bert"), CONTEXT).digest == one
    assert plan_deletion(deletion("bert"), CONTEXT).digest != one
    again = UserActionContext(CONTEXT.view, (pod("bert", uid="u-new"), *PODS[1:]), {})
    assert plan_deletion(deletion("bert", "over"), again).digest != one
    both = (plan_cordon(kind(nodes=("gpu01",)), CONTEXT).digest for kind in (Cordon, Uncordon))
    assert len(set(both)) == 2


@pytest.mark.parametrize(
    ("action", "text", "warnings"),
    [
        (
            Cordon(nodes=("gpu01",)),
            "Cordon gpu01: no new pods are scheduled there. The 4 pods on it keep running.",
            (),
        ),
        (
            Uncordon(nodes=("gpu02",)),
            "Uncordon gpu02: new pods are scheduled there again. 8 GPUs are free on it.",
            (),
        ),
        (
            Uncordon(nodes=("gpu01",)),
            "Uncordon gpu01: new pods are scheduled there again. 6 GPUs are free on it.",
            ("gpu01 is not cordoned.",),
        ),
    ],
)
def test_what_a_cordon_does(action: Cordon | Uncordon, text: str, warnings: tuple[str, ...]) -> None:
    (step,) = render_plan(plan_cordon(action, CONTEXT), "en", dry_run=True).steps
    assert (step.text, step.warnings) == (text, warnings)


@pytest.mark.parametrize("name", ["desk", "nowhere"])
def test_what_kubernetes_does_not_have_is_not_cordoned(name: str) -> None:
    with pytest.raises(ValueError, match="has no node"):
        plan_cordon(Cordon(nodes=(name,)), CONTEXT)


def release(act: KillProcess | PodWrite, what: str) -> CleanupPlan:
    values: dict[str, Any] = {"node": "gpu01", "gpu": 1, "seconds": 60.0, "process": "python3", "pid": 7}
    item = Item(
        id="i1", name="nlp/bert", why=Text(key=f"cleanup.why.gpu-{what}", values=values), risk=Risk.HIGH, node="gpu01",
        owner="zhang", act=act,
    )  # fmt: skip
    return CleanupPlan(id="p", policy="release", kind="gpus", mode=Mode.ENFORCE, at=NOW, items=(item,))


def test_what_a_release_does() -> None:
    action = ReleaseGpu(node="gpu01", gpu="1")
    kill = plan_release(action, release(KillProcess(pid=7, started_at=1.0, gpu="GPU-1"), "zombie"), CONTEXT)
    (step,) = render_plan(kill, "en", dry_run=True).steps
    assert (step.kind, step.owner, step.gpus) == ("kill", "zhang", 1)
    assert step.text.startswith("Kill process 7 (python3) on gpu01, which holds GPU 1. ")
    write = PodWrite(namespace="nlp", name="bert", uid="u-bert", how="evict")
    (step,) = render_plan(plan_release(action, release(write, "idle"), CONTEXT), "zh", dry_run=True).steps
    assert (step.kind, step.gpus) == ("evict", 2)
    assert step.text == (
        "从 gpu01 驱逐 zhang 的 Pod nlp/bert：先通知它退出，并遵守 PDB 的限制。"
        "占用 gpu01 的 GPU 1，所有 GPU 都已空闲 1 分钟。将释放 gpu01 的 2 张 GPU。"
    )


def test_why_there_is_no_plan_is_said() -> None:
    refused = CleanupPlan(
        id="p", policy="release", kind="gpus", mode=Mode.ENFORCE, at=NOW,
        refused=Text(key="cleanup.refused.kubernetes-unseen"),
    )  # fmt: skip
    with pytest.raises(ValueError, match="Kubernetes"):
        plan_release(ReleaseGpu(node="gpu01", gpu="1"), refused, CONTEXT)
