"""What owners keep, in plans of GPUs and datasets."""

from __future__ import annotations

from dataclasses import replace as changed
from typing import Any

from monitor.cleanup.plan.gpus import plan_gpus
from monitor.cleanup.plan.keeps import Keep, keep_protection
from tests.cleanup.builders import GIB, NOW, names, scan, unit
from tests.cleanup.plan import test_datasets, test_gpus

HOUR = 3600.0


def keep(item_id: str, at: float, until: float, reason: str = "") -> dict[str, Keep]:
    one = Keep(item=item_id, name="x", policy="p", owner="zhang", at=at, until=until, reason=reason)
    return {item_id: one}


def test_a_kept_pod_keeps_its_gpu_until_then() -> None:
    context = test_gpus.scene(test_gpus.holding(test_gpus.alone()), idle_after=HOUR)
    (due,) = plan_gpus(context).items
    held = plan_gpus(changed(context, keeps=keep(due.id, context.now - 60, context.now + 1, "debugging")))
    assert held.items == ()
    ((name, node, *kept),) = [(one.name, one.node, one.protection, one.detail, one.until) for one in held.kept]
    assert (name, node) == (due.name, due.node)
    assert kept == ["kept", "zhang: debugging", context.now + 1]
    assert plan_gpus(changed(context, keeps=keep(due.id, context.now - 60, context.now))).items == (due,)
    assert plan_gpus(changed(context, keeps=keep("gpu-pod/other", context.now - 60, context.now + 60))).items == (due,)


def test_a_kept_dataset_stays_and_the_next_one_goes() -> None:
    given = scan(unit("zhang/datasets/a", days=200), unit("zhang/datasets/b", days=100))
    context: Any = test_datasets.ON_NAS
    found = test_datasets.plan(given, context=context)
    keeps = keep(found.items[0].id, NOW - 60, NOW + 60)
    held = test_datasets.plan(given, context=changed(context, keeps=keeps))
    assert names(held) == ["zhang/datasets/b"]
    spared = next(one for one in held.kept if one.protection == "kept")
    assert (spared.name, spared.node, spared.bytes) == ("zhang/datasets/a", "n1", 10 * GIB)
    assert (spared.detail, spared.until) == ("zhang", NOW + 60)


def test_nobody_keeps_what_is_over_their_quota() -> None:
    given = scan(unit("zhang/datasets/a", days=200))
    (due,) = test_datasets.plan(given, quota=1).items
    keeps = keep(due.id, NOW - 60, NOW + 60)
    context = changed(test_datasets.ON_NAS, keeps=keeps)
    assert names(test_datasets.plan(given, context=context, quota=1)) == ["zhang/datasets/a"]


def test_a_keep_without_a_reason_names_its_owner() -> None:
    protection = keep_protection(keep("i", NOW, NOW + 1), "i", NOW)
    assert protection is not None
    assert (protection.detail, protection.until) == ("zhang", NOW + 1)
