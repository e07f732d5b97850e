"""What a machine without a cluster or GPU shows, and when it needs attention."""

from __future__ import annotations

import pytest

from monitor.facts.cluster import ClusterView, GpuState, GpuView, SourceView
from monitor.i18n import LANGUAGES
from monitor.i18n.notes import sentence
from monitor.present.connect import connect_hints
from monitor.present.gpu_totals import GpuCounter
from monitor.present.health import cluster_health

NO_CLUSTER = SourceView(name="kubernetes", ok=False, why="no credentials")
NO_PODS = SourceView(name="pods", ok=False, why="timeout", since=1.0)
AGENTS = SourceView(name="agents", ok=True)
GPU = GpuView(node="a", index=0, state=GpuState.FREE)


@pytest.mark.parametrize(
    ("name", "sources", "gpus", "evaluated", "level", "hinted"),
    [
        ("neither", (NO_CLUSTER, AGENTS), (), True, "unconnected", True),
        ("neither, before the first evaluation", (NO_CLUSTER, AGENTS), (), False, "unconnected", True),
        ("a GPU without a cluster", (NO_CLUSTER, AGENTS), (GPU,), True, "fine", False),
        ("a cluster without GPUs", (AGENTS,), (), True, "fine", False),
        ("a cluster that cannot be read", (NO_PODS, AGENTS), (), True, "warning", False),
        ("a silent agent", (NO_CLUSTER, SourceView(name="agents", ok=False)), (), True, "warning", True),
    ],
)
def test_the_health_of_what_is_connected(
    name: str, sources: tuple[SourceView, ...], gpus: tuple[GpuView, ...], evaluated: bool, level: str, hinted: bool
) -> None:
    view = ClusterView(at=0.0, sources=sources, gpus=gpus)
    health = cluster_health(view, GpuCounter().totals(view), (), () if evaluated else None)
    assert (health.level, bool(health.hints)) == (level, hinted), name
    assert (NO_CLUSTER in health.blind_spots) is (NO_CLUSTER in sources and not hinted), name


@pytest.mark.parametrize("lang", LANGUAGES)
def test_the_hints_say_what_to_do_and_why_there_is_no_cluster(lang: str) -> None:
    hints = [sentence(hint, lang) for hint in connect_hints((NO_CLUSTER,), has_gpus=False)]
    assert "no credentials" in hints[0]
    for number, words in enumerate(("gpuwarden init", "nvidia-smi", "daemon.agents.static", "gpuwarden demo")):
        assert words in hints[number]
