"""The GPUs of pods: those that agents report, and how many more Kubernetes allocated."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from monitor.facts.cluster import GpuView, PodView
from monitor.present.rows import MAX_ROWS, ClusterIndex, gpu_rows, unseen_gpus
from monitor.web.pages.render import PageRequest, PageSection

MAX_NODE_NAMES = 5


def held_gpus(page: PageRequest, index: ClusterIndex, gpus: Sequence[GpuView], pods: Iterable[PodView]) -> PageSection:
    """The section about the GPUs that pods hold. It adds up to the number of GPUs that they have."""
    unseen = unseen_gpus(index, pods)
    names = [*sorted(unseen)[:MAX_NODE_NAMES], *(["..."] if len(unseen) > MAX_NODE_NAMES else [])]
    return page.section(
        "cards",
        "cards",
        rows=gpu_rows(gpus[:MAX_ROWS], page.lang),
        more=max(0, len(gpus) - MAX_ROWS),
        unseen=unseen,
        where_unseen=", ".join(names),
        where=True,
    )
