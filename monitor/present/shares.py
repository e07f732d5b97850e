"""Shares of GPUs in words, for tables and pages."""

from __future__ import annotations

from collections.abc import Iterable

from monitor.facts.cluster import Holder, NodeView, PodView, QueueView, ShareView
from monitor.facts.gpu_requests import amount_value, brief
from monitor.facts.gpu_resources import GPU_RESOURCE, SHARED_GPU, Unit
from monitor.facts.kube import Amounts
from monitor.facts.text import Value
from monitor.i18n import say
from monitor.i18n.figures import number
from monitor.i18n.gpus import gpus, share


def wanted(pods: Iterable[PodView]) -> Value:
    """What pods request of GPUs together, for a text (format `gpus`)."""
    return gpu_value(*requested(pods))


def requested(pods: Iterable[PodView]) -> tuple[float, Amounts]:
    """Whole GPUs, and shares by resource, that pods request together."""
    whole, total = 0.0, dict[str, float]()
    for pod in pods:
        whole += pod.requested_gpus
        for name, amount in pod.gpu_shares.items():
            total[name] = total.get(name, 0.0) + amount
    return whole, total


def gpu_value(whole: float, shares: Amounts) -> Value:
    """Whole GPUs and shares of others, for a text (format `gpus`)."""
    return amount_value(({GPU_RESOURCE: whole} if whole else {}) | shares, "") if shares else whole


def gpus_cell(whole: float, shares: Amounts, lang: str) -> str:
    """Whole GPUs as a number, or shares of them in words, for a column of GPUs."""
    return gpus(gpu_value(whole, shares), lang) if shares else number(round(whole, 1))


def queue_used(queue: QueueView, lang: str) -> str:
    """What the pods of a queue hold, and its limit if it has one."""
    used = gpus_cell(queue.used, queue.used_shares, lang)
    return f"{used} / {gpus_cell(queue.capacity or 0.0, queue.capacity_shares, lang)}" if queue.limited else used


def queue_free(queue: QueueView, lang: str) -> str | None:
    """What is left of the limit of a queue; None if it has none."""
    return gpus_cell(queue.free or 0.0, queue.free_shares, lang) if queue.limited else None


def share_lines(node: NodeView, lang: str) -> list[tuple[str, str]]:
    """Shares that a node offers: the resource, and how much of it is used."""
    return [(each.resource, _used(each, lang)) for each in node.shares]


def _used(each: ShareView, lang: str) -> str:
    name = SHARED_GPU if each.unit == Unit.SLOT.value and each.resource == GPU_RESOURCE else each.resource
    values: dict[str, Value] = {
        "used": brief(each.resource, each.used),
        "total": amount_value({name: each.total}, ""),
    }
    return say(lang, "page.share.used", values)


def holder_share(holder: Holder, lang: str) -> str:
    """Which part of a GPU a holder may use; empty if it is not known or all of it."""
    return share(holder.slots, holder.share_memory_bytes, holder.share_cores_ratio, lang)
