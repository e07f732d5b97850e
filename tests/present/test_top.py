"""The frame of `gpuwarden top`: rows, order, keys, alerts."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest

from monitor.alert.model import Phase
from monitor.facts.cluster import ClusterView, GpuState, GpuView, Holder, Identity, NodeView, PodView, SourceView
from monitor.facts.findings import Severity
from monitor.present.alerts import LocalizedAlert
from monitor.present.top import SORT_KEYS, TopChoice, TopKind, TopRow, pressed, top_frame


def gpu(node: str, index: int, state: GpuState = GpuState.BUSY, user: str | None = None, **figures: float) -> GpuView:
    holders = () if user is None else (Holder(user=user, pod=f"{user}-0", namespace="lab", pod_uid=user, live=True),)
    return msgspec.convert(
        {"node": node, "index": index, "state": state, "holders": msgspec.to_builtins(holders)} | figures, GpuView
    )


VIEW = ClusterView(
    at=1.0,
    nodes=(
        NodeView(name="n2", has_agent=True, free=1, allocatable=2),
        NodeView(name="n10", silent_since=0.5, has_agent=True),
    ),
    gpus=(
        gpu("n10", 0, GpuState.UNKNOWN),
        gpu("n2", 0, user="zhang", utilization_ratio=0.9, memory_used_bytes=10, memory_total_bytes=80,
            temperature_celsius=60.0, power_watts=300.0, power_limit_watts=400.0),
        gpu("n2", 1, GpuState.ZOMBIE, user="li", utilization_ratio=0.0, memory_used_bytes=70, memory_total_bytes=80,
            temperature_celsius=40.0, power_watts=60.0),
    ),
    pods=(PodView(uid="zhang", name="zhang-0", namespace="lab", phase="Running", identity=Identity(job="bert")),),
)  # fmt: skip


def rows(choice: TopChoice) -> tuple[TopRow, ...]:
    return top_frame(VIEW, (), choice, "en").rows


@pytest.mark.parametrize(
    ("sort", "names"),
    [
        ("name", ["n2/0", "n2/1", "n10/0"]),
        ("utilization", ["n2/0", "n2/1", "n10/0"]),
        ("memory", ["n2/1", "n2/0", "n10/0"]),
        ("temperature", ["n2/0", "n2/1", "n10/0"]),
        ("power", ["n2/0", "n2/1", "n10/0"]),
        ("user", ["n2/1", "n2/0", "n10/0"]),
        ("state", ["n2/1", "n10/0", "n2/0"]),
    ],
)
def test_every_column_sorts_and_what_is_unknown_is_last(sort: str, names: list[str]) -> None:
    assert sort in SORT_KEYS.values()
    assert [row.name for row in rows(TopChoice(sort=sort))] == names


def test_the_order_can_be_reversed_but_what_is_unknown_stays_last() -> None:
    assert [row.name for row in rows(TopChoice(sort="memory", reverse=True))] == ["n2/0", "n2/1", "n10/0"]
    assert [row.name for row in rows(TopChoice(reverse=True))] == ["n10/0", "n2/1", "n2/0"]


def test_a_gpu_with_its_holder() -> None:
    assert rows(TopChoice())[0] == TopRow(
        name="n2/0", state="busy", utilization_ratio=0.9, memory_used_bytes=10, memory_total_bytes=80,
        temperature_celsius=60.0, power_watts=300.0, power_limit_watts=400.0, user="zhang",
        pod="lab/zhang-0", job="bert",
    )  # fmt: skip


def test_a_node_sums_up_its_gpus_and_unknown_is_not_zero() -> None:
    known, silent = rows(TopChoice(kind=TopKind.NODES))
    assert (known.name, known.state, known.free, known.user) == ("n2", "ok", "1/2", "li, zhang")
    assert (known.utilization_ratio, known.memory_used_bytes, known.temperature_celsius) == (0.45, 80, 60.0)
    assert (known.power_watts, known.power_limit_watts) == (360, 400)
    assert (silent.free, silent.utilization_ratio, silent.power_watts) == ("?/?", None, None)
    assert silent.state.startswith("agent silent for ")


@pytest.mark.parametrize(
    ("key", "choice"),
    [
        ("u", TopChoice(sort="utilization")),
        ("r", TopChoice(reverse=True)),
        ("tab", TopChoice(kind=TopKind.NODES)),
        ("down", TopChoice(first=8)),
        ("up", TopChoice(first=6)),
        ("page-down", TopChoice(first=12)),
        ("page-up", TopChoice(first=2)),
        ("home", TopChoice(first=0)),
        ("end", TopChoice(first=15)),
        ("x", TopChoice(first=7)),
        ("", TopChoice(first=7)),
    ],
)
def test_what_a_key_does(key: str, choice: TopChoice) -> None:
    assert pressed(TopChoice(first=7), key, rows=20, page=5) == choice


@pytest.mark.parametrize(("rows", "page"), [(0, 5), (3, 5), (5, 5)])
def test_what_fits_does_not_scroll(rows: int, page: int) -> None:
    assert pressed(TopChoice(), "end", rows, page).first == 0
    assert pressed(TopChoice(first=9), "", rows, page).first == 0


def test_a_second_press_of_tab_returns_to_the_gpus() -> None:
    assert pressed(pressed(TopChoice(), "tab", 1, 1), "tab", 1, 1) == TopChoice()


def alert(severity: Severity, **more: object) -> LocalizedAlert:
    fields = {
        "fingerprint": "f", "rule": "gpu-hot", "severity": severity, "cause": "x", "phase": Phase.FIRING, "labels": {},
        "headline": f"A {severity} one.", "since": 0.0,
    }  # fmt: skip
    return msgspec.convert(fields | more, LocalizedAlert)


def test_alerts_are_one_line_about_what_needs_attention() -> None:
    given = (
        alert(Severity.CRITICAL),
        alert(Severity.WARNING),
        alert(Severity.WARNING, explained_by="f"),
        alert(Severity.WARNING, silenced_by="s"),
        alert(Severity.CRITICAL, in_maintenance=True),
        alert(Severity.CRITICAL, phase=Phase.RESOLVED),
    )
    frame = top_frame(VIEW, given, TopChoice(), "en")
    assert frame.alerts == "1 critical, 1 warning, 0 info: A critical one."
    assert frame.severity is Severity.CRITICAL


def test_no_alert_is_not_unknown_alerts() -> None:
    calm, blind = (top_frame(VIEW, alerts, TopChoice(), "en") for alerts in ((), None))
    assert (calm.alerts, calm.severity) == ("No alert is firing.", None)
    assert (blind.alerts, blind.severity) == ("Alerts are unknown: no daemon answers.", None)


def test_the_summary_in_both_languages() -> None:
    summaries = [top_frame(VIEW, (), TopChoice(), lang).summary for lang in ("en", "zh")]
    assert summaries == [
        "2 nodes, 3 GPUs: 1 unknown, 1 zombie, 1 busy, mean utilisation 45%",
        "2 个节点，3 张 GPU：未知 1、僵尸占用 1、使用中 1、平均利用率 45%",
    ]


def test_failing_sources_are_named() -> None:
    sources = (SourceView(name="agents", ok=False, why="x"), SourceView(name="pods", ok=True))
    view = msgspec.structs.replace(VIEW, sources=sources)
    assert top_frame(view, (), TopChoice(), "en").sources == "Failing sources: agents"
    assert top_frame(VIEW, (), TopChoice(), "en").sources == ""


def test_names_from_outside_cannot_reach_the_terminal() -> None:
    evil = "\x1b[31m\n"
    view = ClusterView(at=1.0, nodes=(NodeView(name=evil),), gpus=(gpu(evil, 0, user=evil),))
    for kind in TopKind:
        for row in top_frame(view, (alert(Severity.INFO, headline=evil),), TopChoice(kind=kind), "en").rows:
            assert all(str(getattr(row, name)).isprintable() for name in ("name", "state", "user", "pod", "job"))


def test_a_choice_does_not_change_the_summary() -> None:
    frame = top_frame(VIEW, (), TopChoice(), "en")
    other = top_frame(VIEW, (), TopChoice(kind=TopKind.NODES, sort="power"), "en")
    assert replace(frame, rows=(), choice=TopChoice()) == replace(other, rows=(), choice=TopChoice())
