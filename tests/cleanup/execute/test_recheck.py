"""Whether an item still holds right before it would be done."""

from __future__ import annotations

from typing import Any, cast

import pytest
from msgspec.structs import replace

from monitor.cleanup.execute.recheck import Recheck
from monitor.cleanup.execute.references_reader import VolumeList
from monitor.cleanup.model import CleanupPlan, Item, KeptItem, PodWrite
from monitor.cleanup.on_demand import release_policy
from monitor.cleanup.plan.references import VolumeUse
from monitor.cleanup.plan.select import PlanSubject, refuse
from monitor.cleanup.policy import CleanupPolicy, DatasetPolicy, Exempt, GpuPolicy, ImagePolicy
from monitor.facts.actions import KillProcess, TrashUnit
from tests.cleanup.support import NOW, item, plan, run

GPUS = GpuPolicy(name="gpus", exempt=Exempt(users=("root",)))
DATA = DatasetPolicy(name="data", root="/mnt/share", node="n1")


class Facts:
    """Stands for what is gathered: another plan each time it is asked."""

    def __init__(self, now: CleanupPlan | None = None, volumes: VolumeList | None = None) -> None:
        self._plan, self._volumes = now, volumes or VolumeList()
        self.asked: list[CleanupPolicy] = []

    def plan(self, policy: CleanupPolicy, _node: str | None) -> CleanupPlan:
        self.asked.append(policy)
        assert self._plan is not None
        return self._plan

    def volumes(self) -> VolumeList:
        return self._volumes

    def agents(self) -> dict[str, Any]:
        return {}


def against(facts: Facts, one: Item, policy: str = "gpus") -> str | None:
    policies: dict[str, CleanupPolicy] = {"gpus": GPUS, "data": DATA, "images": ImagePolicy(name="images")}
    check = Recheck(cast("Gatherer", facts), policies, release_policy(tuple(policies.values())))
    return check(run(policy=policy), one)


def pod(how: str = "evict", uid: str = "u1") -> Item:
    return replace(item(1), id=f"gpu-pod/{uid}", name="t/p", act=PodWrite(namespace="t", name="p", uid=uid, how=how))


PROCESS = replace(item(2), act=KillProcess(pid=5, started_at=1.0, gpu="GPU-1"))
ANOTHER = replace(item(2), act=KillProcess(pid=5, started_at=2.0, gpu="GPU-1"))


@pytest.mark.parametrize(
    ("name", "now", "one", "word"),
    [
        ("it still holds", plan(pod()), pod(), None),
        ("it works again", plan(kept=(KeptItem(name="t/p", protection="busy"),)), pod(), "busy"),
        ("it is gone", plan(), pod(), "changed"),
        ("something else is to be done to it by now", plan(pod("delete")), pod("evict"), "changed"),
        ("another process under that pid", plan(ANOTHER), PROCESS, "changed"),
        ("nobody knows", refuse(PlanSubject(GPUS, NOW), "kubernetes-unseen"), pod(), "unknown"),
    ],
)  # fmt: skip
def test_cards_and_pods_are_planned_anew(name: str, now: CleanupPlan, one: Item, word: str | None) -> None:
    facts = Facts(now)
    assert against(facts, one) == word
    assert facts.asked[0].caps.items > 1000  # no cap hides what still holds


def test_a_release_is_judged_by_its_own_policy_with_the_exemptions_of_the_others() -> None:
    facts = Facts(plan(pod()))
    assert against(facts, pod(), "release") is None
    (asked,) = facts.asked
    assert isinstance(asked, GpuPolicy)
    assert (asked.notice, asked.idle_after, asked.exempt.users) == (0.0, 0.0, ("root",))


def unit(path: str) -> Item:
    act = TrashUnit(root="/mnt/share", path=path, device=1, inode=1, newest=1.0, policy="data")
    return replace(item(3), act=act)


@pytest.mark.parametrize(
    ("name", "volumes", "word"),
    [
        ("nobody has it", VolumeList(), None),
        ("a pod has come that mounts it", VolumeList((VolumeUse("Pod t/p", "/mnt/share/zhang/a"),)), "needed"),
        ("a template mounts what is above it", VolumeList((VolumeUse("Job t/j", "/mnt/share/zhang"),)), "needed"),
        ("another one is mounted", VolumeList((VolumeUse("Pod t/p", "/mnt/share/zhang/b"),)), None),
        ("nobody knows", VolumeList((), ("jobs.batch",)), "unknown"),
    ],
)
def test_datasets_that_somebody_has_as_a_volume_by_now(name: str, volumes: VolumeList, word: str | None) -> None:
    assert against(Facts(volumes=volumes), unit("zhang/a"), "data") == word


def test_what_is_not_ours_to_judge() -> None:
    assert against(Facts(), item(1), "images") is None  # the agent looks at images, and is told what is needed
    assert against(Facts(), item(1), "restore") is None
    assert against(Facts(), pod(), "no-such-policy") == "unknown"
