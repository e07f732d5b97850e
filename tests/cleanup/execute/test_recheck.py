"""Re-checks of items immediately before their execution."""

from __future__ import annotations

import time
from typing import Any, cast

import pytest
from msgspec.structs import replace

from monitor.cleanup.execute.recheck import Recheck
from monitor.cleanup.execute.references_reader import VolumeList
from monitor.cleanup.execute.run_plan import OVER_QUOTA
from monitor.cleanup.inputs import Planner
from monitor.cleanup.model import CleanupPlan, Item, KeptItem, PodWrite
from monitor.cleanup.on_demand import release_policy
from monitor.cleanup.plan.keeps import Keep
from monitor.cleanup.plan.references import VolumeUse
from monitor.cleanup.plan.select import PlanSubject, refuse
from monitor.cleanup.policy import CleanupPolicy, DatasetPolicy, Exempt, GpuPolicy, ImagePolicy
from monitor.facts.actions import KillProcess, TrashUnit
from monitor.facts.text import Text
from tests.cleanup.support import NOW, item, plan, run

GPUS = GpuPolicy(name="gpus", exempt=Exempt(users=("root",)))
UNUSED = "cleanup.why.dataset-unused"
DATA = DatasetPolicy(name="data", root="/mnt/share", node="n1")


class FakePlanner:
    """A planner with a configured plan and volumes."""

    def __init__(
        self, now: CleanupPlan | None = None, volumes: VolumeList | None = None, keeps: dict[str, Keep] | None = None
    ) -> None:
        self._plan, self._volumes, self._keeps = now, volumes or VolumeList(), keeps or {}
        self.policies: list[CleanupPolicy] = []

    def plan(self, policy: CleanupPolicy, _node: str | None) -> CleanupPlan:
        self.policies.append(policy)
        assert self._plan is not None
        return self._plan

    def volumes(self) -> VolumeList:
        return self._volumes

    def agents(self) -> dict[str, Any]:
        return {}

    def keeps(self) -> dict[str, Keep]:
        return self._keeps


def recheck(planner: FakePlanner, one: Item, policy: str = "gpus") -> str | None:
    policies: dict[str, CleanupPolicy] = {"gpus": GPUS, "data": DATA, "images": ImagePolicy(name="images")}
    check = Recheck(cast("Planner", planner), policies, release_policy(tuple(policies.values())))
    return check(run(policy=policy), one)


def pod(how: str = "evict", uid: str = "u1") -> Item:
    return replace(item(1), id=f"gpu-pod/{uid}", name="t/p", act=PodWrite(namespace="t", name="p", uid=uid, how=how))


PROCESS = replace(item(2), act=KillProcess(pid=5, started_at=1.0, gpu="GPU-1"))
ANOTHER = replace(item(2), act=KillProcess(pid=5, started_at=2.0, gpu="GPU-1"))


@pytest.mark.parametrize(
    ("name", "now", "one", "protection"),
    [
        ("it still holds", plan(pod()), pod(), None),
        ("it works again", plan(kept=(KeptItem(name="t/p", protection="busy"),)), pod(), "busy"),
        ("it is gone", plan(), pod(), "changed"),
        ("something else is to be done to it by now", plan(pod("delete")), pod("evict"), "changed"),
        ("another process under that pid", plan(ANOTHER), PROCESS, "changed"),
        ("unknown", refuse(PlanSubject(GPUS, NOW), "kubernetes-unseen"), pod(), "unknown"),
    ],
)  # fmt: skip
def test_cards_and_pods_are_planned_anew(name: str, now: CleanupPlan, one: Item, protection: str | None) -> None:
    planner = FakePlanner(now)
    assert recheck(planner, one) == protection
    assert planner.policies[0].caps.items > 1000  # no cap hides a valid item


def test_a_release_is_judged_by_its_own_policy_with_the_exemptions_of_the_others() -> None:
    planner = FakePlanner(plan(pod()))
    assert recheck(planner, pod(), "release") is None
    (policy,) = planner.policies
    assert isinstance(policy, GpuPolicy)
    assert (policy.notice, policy.idle_after, policy.exempt.users) == (0.0, 0.0, ("root",))


def unit(path: str) -> Item:
    act = TrashUnit(root="/mnt/share", path=path, device=1, inode=1, newest=1.0, policy="data")
    return replace(item(3), act=act)


@pytest.mark.parametrize(
    ("name", "volumes", "protection"),
    [
        ("not mounted", VolumeList(), None),
        ("a pod has come that mounts it", VolumeList((VolumeUse("Pod t/p", "/mnt/share/zhang/a"),)), "needed"),
        ("a template mounts what is above it", VolumeList((VolumeUse("Job t/j", "/mnt/share/zhang"),)), "needed"),
        ("another one is mounted", VolumeList((VolumeUse("Pod t/p", "/mnt/share/zhang/b"),)), None),
        ("unknown", VolumeList((), ("jobs.batch",)), "unknown"),
    ],
)
def test_datasets_that_are_mounted_by_now(name: str, volumes: VolumeList, protection: str | None) -> None:
    assert recheck(FakePlanner(volumes=volumes), unit("zhang/a"), "data") == protection


def test_what_is_not_ours_to_judge() -> None:
    assert recheck(FakePlanner(), item(1), "images") is None  # the agent checks images
    assert recheck(FakePlanner(), item(1), "restore") is None
    assert recheck(FakePlanner(), pod(), "no-such-policy") == "unknown"


@pytest.mark.parametrize(
    ("until", "why", "protection"),
    [
        (60.0, "cleanup.why.dataset-unused", "kept"),
        (-1.0, "cleanup.why.dataset-unused", None),
        (60.0, OVER_QUOTA, None),
    ],
)
def test_an_owner_who_answers_during_the_run_is_heard(until: float, why: str, protection: str | None) -> None:
    act = TrashUnit(root="/mnt/share", path="a", device=1, inode=2, newest=0.0, policy="data")
    one = replace(item(3), id="dataset/1:2/a", act=act, why=Text(key=why))
    now = time.time()
    keep = Keep(item=one.id, name="a", policy="data", owner="zhang", at=now - 60, until=now + until)
    assert recheck(FakePlanner(keeps={one.id: keep}), one, "data") == protection
