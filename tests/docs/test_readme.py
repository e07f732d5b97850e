"""The README is short and contains the latest measured figures."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = ("README.md", "README.zh-CN.md")
MEASURED = json.loads((ROOT / "bench" / "results.json").read_text(encoding="utf-8"))
TABLES = (ROOT / "bench" / "RESULTS.md").read_text(encoding="utf-8")


def cost(exporter: str) -> tuple[int, int]:
    """MiB of memory and ms of CPU per 15 s from the table."""
    found = re.search(rf"^\| {re.escape(exporter)} \| \d+ \| ([\d.]+) \| ([\d.]+) \|", TABLES, flags=re.MULTILINE)
    assert found, exporter
    return round(float(found[2])), round(float(found[1]))


def figures() -> list[str]:
    ours = MEASURED["alert_p50_s"]
    peer, agent = cost("node_exporter (no GPU)"), cost("gpuwarden agent, 8 processes")
    return [
        f"{ours:.1f} s",
        f"{ours * MEASURED['alert_speedup_vs_prometheus_default']:.0f} s",
        f"{ours * MEASURED['alert_speedup_vs_prometheus_tuned']:.1f} s",
        f"{peer[0]} MiB",
        f"{peer[1]} ms",
        f"{agent[0]} MiB",
        f"{agent[1]} ms",
        f"{1 / MEASURED['agent_cpu_ratio_8']:.0f} ",
        f"{1 / MEASURED['agent_cpu_ratio_64']:.0f} ",
        f"{MEASURED['view_speedup']:.0f} ",
    ]


@pytest.mark.parametrize("page", PAGES)
def test_figures_are_those_that_were_measured(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    assert [figure for figure in figures() if figure not in text] == []


@pytest.mark.parametrize(("page", "most"), [("README.md", 5500), ("README.zh-CN.md", 3500)])
def test_it_is_read_in_two_minutes(page: str, most: int) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    bare = re.sub(r"\]\([^)]*\)|<!--.*?-->|^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    assert len(bare) <= most
