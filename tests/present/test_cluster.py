"""The cluster view as tables."""

from __future__ import annotations

import io
from typing import Any

import msgspec
import pytest

from monitor.cli.tables import print_view
from monitor.facts.cluster import (
    ClusterView,
    FreeView,
    GpuState,
    GpuView,
    Holder,
    Identity,
    NodeView,
    PodView,
    QueueView,
    SourceView,
    UsageView,
)
from monitor.facts.text import Evidence
from monitor.present.cluster import headline, needs_attention, tables
from monitor.present.table import MAX_ROWS, NUMERIC_COLUMNS, TextTable, heading

AT = 1_763_260_000.0
GIB = 1024**3
EMPTY = ClusterView(at=AT)
LI = Holder(pod="bert-0", namespace="team-a", pod_uid="u1", user="li", live=True)


def gpu(state: GpuState, index: int = 0, node: str = "gpu-01", what: str = "", **fields: Any) -> GpuView:
    evidence = {"evidence": (Evidence(key=what, values=fields.pop("values", {})),)} if what else {}
    return GpuView(node=node, state=state, index=index, **(evidence | fields))


def node(name: str, **fields: Any) -> NodeView:
    given: dict[str, Any] = {"in_kubernetes": True, "ready": True, "has_agent": True, "allocatable": 8, "free": 2}
    return NodeView(name=name, **(given | fields))


FULL = ClusterView(
    at=AT,
    nodes=(
        node("gpu-01", model="A100"),
        node("gpu-02", schedulable=False),
        node("gpu-03", ready=False, silent_since=AT - 300, free=None),
        node("gpu-04", has_agent=False, ready=None),
        node("gpu-05", in_kubernetes=False, ready=None, schedulable=False, allocatable=None, cards=4),
        node("gpu-06", in_kubernetes=False, allocatable=None, free=None, silent_since=AT - 7200),
    ),
    gpus=(
        gpu(GpuState.UNKNOWN, 0, "gpu-03", "agent-silent", since=AT - 240, values={"since": AT - 300, "error": ""}),
        gpu(GpuState.FREE, 0),
        gpu(GpuState.BUSY, 1, holders=(LI,)),
        gpu(GpuState.IDLE_HELD, 2, what="idle", since=AT - 7200, holders=(LI,), values={"since": AT - 9000}),
        gpu(GpuState.FAULTY, 3, what="xid", since=AT - 60, values={"code": 79, "at": AT - 90.5, "message": "off"}),
        gpu(GpuState.WEDGED, 4, what="process-state", values={"pid": 7, "state": "D", "since": AT - 400.0}),
        gpu(GpuState.ZOMBIE, 5, what="pod-deleted", holders=(Holder(pod_uid="u9"),), values={"pid": 8}),
        gpu(GpuState.ORPHAN, 6, what="no-pod", values={"pid": 9, "process": "python"}),
        gpu(GpuState.GHOST, 7, what="memory-without-process", values={"bytes": 5 * GIB, "ratio": 0.95}),
        gpu(GpuState.PHANTOM, 0, "gpu-02", "pod-deleted", holders=(Holder(pod="gone", namespace="x"),)),
    ),
    pods=(
        PodView(uid="1", name="runs", namespace="a", phase="Running", node="gpu-01", identity=Identity(user="li")),
        PodView(uid="2", name="new", namespace="a", phase="Pending", identity=Identity(), created_at=AT - 60),
        PodView(uid="3", name="old", namespace="a", phase="Pending", created_at=AT - 3600, requested_gpus=8,
                identity=Identity(user="li", queue="vc1")),
        PodView(uid="4", name="pulls", namespace="a", phase="Pending", node="gpu-01", identity=Identity()),
    ),
    free=(FreeView(model="A100", total=16, free=5, largest_on_one_node=3, on={"gpu-02": 2, "gpu-01": 3}),),
    queues=(
        QueueView(name="vc1", used=4, waiting=8, capacity=8, free=4, state="open"),
        QueueView(name="vc2", used=0.5, waiting=0),
    ),
    users={
        "wang": UsageView(gpus=1),
        "li": UsageView(gpus=4, gpu_memory_bytes=60 * GIB, gpu_utilization_ratio=0.55, shm_bytes=GIB, cpu_cores=2.54,
                        memory_bytes=20 * GIB, disk_bytes=3 * GIB),
    },
    sources=(
        SourceView(name="pods", ok=True),
        SourceView(name="nodes", ok=False, why="stale; refused", since=AT - 120),
        SourceView(name="agents", ok=False, why="1 of 3 silent: gpu-03"),
    ),
)  # fmt: skip


def table(view: ClusterView, title: str) -> TextTable:
    return next(found for found in tables(view) if found.title.startswith(title))


@pytest.mark.parametrize(
    ("title", "row"),
    [
        ("Nodes", ("gpu-01", "A100", "ok", "2", "8",
                   "0:free 1:busy 2:idle-held 3:faulty 4:wedged 5:zombie 6:orphan 7:ghost")),
        ("Nodes", ("gpu-02", "?", "cordoned", "2", "8", "0:phantom")),
        ("Nodes", ("gpu-03", "?", "not ready, agent silent for 5m", "?", "8", "0:unknown")),
        ("Nodes", ("gpu-04", "?", "not ready, no agent", "2", "8", "")),
        ("Nodes", ("gpu-05", "?", "ok", "2", "4", "")),
        ("Nodes", ("gpu-06", "?", "agent silent for 2h", "?", "?", "")),
        ("Failing sources", ("nodes", "stale; refused", "2m")),
        ("Failing sources", ("agents", "1 of 3 silent: gpu-03", "")),
        ("GPUs that", ("gpu-03/0", "unknown", "4m", "", "agent-silent since=5m ago")),
        ("GPUs that", ("gpu-01/2", "idle-held", "2h", "li (team-a/bert-0)", "idle since=2h30m ago")),
        ("GPUs that", ("gpu-01/3", "faulty", "1m", "", "xid code=79 at=1m30s ago message=off")),
        ("GPUs that", ("gpu-01/4", "wedged", "", "", "process-state pid=7 state=D since=6m40s ago")),
        ("GPUs that", ("gpu-01/5", "zombie", "", "? (?/u9)", "pod-deleted pid=8")),
        ("GPUs that", ("gpu-01/6", "orphan", "", "", "no-pod pid=9 process=python")),
        ("GPUs that", ("gpu-01/7", "ghost", "", "", "memory-without-process bytes=5.0 GiB ratio=95%")),
        ("GPUs that", ("gpu-02/0", "phantom", "", "? (x/gone)", "pod-deleted")),
        ("Pending pods", ("a/old", "li", "vc1", "8", "1h", "gpuwarden why -n a old")),
        ("Pending pods", ("a/new", "?", "", "0", "1m", "gpuwarden why -n a new")),
        ("Free GPUs", ("A100", "16", "5", "3", "gpu-01: 3, gpu-02: 2")),
        ("Queues", ("vc1", "open", "4", "8", "4")),
        ("Queues", ("vc2", "", "0.5", "0", "?")),
        ("Users", ("li", "4", "8", "55%", "60.0 GiB", "2.5", "20.0 GiB", "1.0 GiB", "3.0 GiB")),
        ("Users", ("wang", "1", "0", "?", "?", "?", "?", "?", "?")),
    ],
)  # fmt: skip
def test_rows_of_a_full_view(title: str, row: tuple[str, ...]) -> None:
    found = table(FULL, title)
    assert row in found.rows
    assert all(len(cells) == len(found.columns) for cells in found.rows)


def test_every_state_is_shown() -> None:
    assert {gpu.state for gpu in FULL.gpus} == set(GpuState)
    shown = " ".join(row[5] for row in table(FULL, "Nodes").rows)
    assert all(f":{state}" in shown for state in GpuState)


def test_what_is_worst_comes_first_and_a_silent_node_last() -> None:
    states = [row[1] for row in table(FULL, "GPUs that").rows]
    assert states == ["faulty", "wedged", "zombie", "orphan", "ghost", "idle-held", "phantom", "unknown"]


def test_who_waits_longest_and_who_has_most_come_first() -> None:
    assert [row[0] for row in table(FULL, "Pending pods").rows] == ["a/old", "a/new"]
    assert [row[0] for row in table(FULL, "Users").rows] == ["li", "wang"]


def test_nothing_is_known() -> None:
    assert tables(EMPTY) == (
        TextTable(
            "Nodes",
            ("node", "model", "state", "free", "GPUs", "GPU states"),
            (),
            "no nodes known: neither Kubernetes nor an agent responds",
        ),
    )


@pytest.mark.parametrize(
    ("view", "line"),
    [
        (EMPTY, "2025-11-16 02:26:40 UTC, 0 nodes, 0 GPUs: none seen"),
        (msgspec.structs.replace(FULL, gpus=(gpu(GpuState.FREE), gpu(GpuState.FAULTY), gpu(GpuState.FREE))),
         "2025-11-16 02:26:40 UTC, 6 nodes, 3 GPUs: 1 faulty, 2 free"),
        (ClusterView(at=AT, nodes=(node("a"),), gpus=(gpu(GpuState.BUSY),)),
         "2025-11-16 02:26:40 UTC, 1 node, 1 GPU: 1 busy"),
    ],
)  # fmt: skip
def test_the_headline(view: ClusterView, line: str) -> None:
    assert headline(view) == line


@pytest.mark.parametrize(
    ("name", "view", "expect"),
    [
        ("nothing", EMPTY, False),
        ("free and busy", ClusterView(at=AT, gpus=(gpu(GpuState.FREE), gpu(GpuState.BUSY))), False),
        *((state.value, ClusterView(at=AT, gpus=(gpu(state),)), True) for state in GpuState if state not in
          (GpuState.FREE, GpuState.BUSY)),
        ("a failing source", ClusterView(at=AT, sources=(SourceView(name="agents", ok=False),)), True),
        ("all sources work", ClusterView(at=AT, sources=(SourceView(name="agents", ok=True),)), False),
    ],
)  # fmt: skip
def test_what_needs_attention(name: str, view: ClusterView, expect: bool) -> None:
    assert needs_attention(view) is expect


def test_an_inference_service_is_named_as_such() -> None:
    holder = Holder(pod_uid="s", pod="chat-0", namespace="a", user="li", live=True)
    pod = PodView(uid="s", name="chat-0", namespace="a", phase="Running", identity=Identity(user="li", inference=True))
    view = ClusterView(at=AT, gpus=(gpu(GpuState.IDLE_HELD, holders=(holder,)),), pods=(pod,))
    assert table(view, "GPUs that need attention").rows[0][3] == "li (a/chat-0), inference service"


def test_a_clock_that_is_behind_gives_no_negative_times() -> None:
    early = msgspec.structs.replace(FULL, at=AT - 10**6)
    cells = [cell for found in tables(early) for row in found.rows for cell in row]
    assert not [cell for cell in cells if "-" in cell and cell.strip("-smhd0123456789") == ""]
    assert ("agents", "1 of 3 silent: gpu-03", "") in table(early, "Failing sources").rows
    assert table(early, "Failing sources").rows[0][2] == "0ms"


@pytest.mark.parametrize("count", [MAX_ROWS, MAX_ROWS + 1])
def test_what_is_left_out_is_said(count: int) -> None:
    nodes = tuple(node(f"n{number:04d}") for number in range(count))
    silent = tuple(gpu(GpuState.UNKNOWN, what="no-agent", node=each.name) for each in nodes)
    faulty = gpu(GpuState.FAULTY, what="xid", node="zzz")
    view = ClusterView(at=AT, nodes=nodes, gpus=(*silent[1:], faulty))
    shown = tables(view)
    assert [len(found.rows) for found in shown] == [MAX_ROWS, MAX_ROWS]
    note = "" if count == MAX_ROWS else f" (the first {MAX_ROWS} of {count})"
    titles = [heading(found, "en") for found in shown]
    assert titles == [f"Nodes{note}", f"GPUs that need attention{note}"]
    assert shown[1].rows[0][0] == "zzz/0", "many GPUs of silent nodes do not hide a faulty one"


def test_many_nodes_with_free_cards_are_summed_up() -> None:
    free = FreeView(model="A100", total=80, free=40, largest_on_one_node=4, on={f"n{i}": 4 for i in range(10)})
    (row,) = table(msgspec.structs.replace(EMPTY, free=(free,)), "Free GPUs").rows
    assert row[4] == "n0: 4, n1: 4, n2: 4, n3: 4, n4: 4, n5: 4, n6: 4, n7: 4 and 2 more"


EVIL = "\x1b[31m\nevil\x07\u202e[bold]"


def hostile() -> ClusterView:
    identity = Identity(user=EVIL, queue=EVIL)
    evil = gpu(GpuState.ZOMBIE, node=EVIL, what=EVIL, values={EVIL: EVIL}, model=EVIL,
               holders=(Holder(user=EVIL, pod=EVIL, namespace=EVIL),))  # fmt: skip
    return ClusterView(
        at=AT,
        nodes=(node(EVIL, model=EVIL),),
        gpus=(evil,),
        pods=(PodView(uid=EVIL, name=EVIL, namespace=EVIL, phase="Pending", identity=identity),),
        free=(FreeView(model=EVIL, total=1, free=1, largest_on_one_node=1, on={EVIL: 1}),),
        queues=(QueueView(name=EVIL, used=1, waiting=1, state=EVIL),),
        users={EVIL: UsageView(gpus=1)},
        sources=(SourceView(name=EVIL, ok=False, why=EVIL),),
    )


def test_names_from_outside_cannot_reach_the_terminal() -> None:
    shown = [headline(hostile())]
    for found in tables(hostile()):
        shown += [found.title, found.note, *found.columns, *(cell for row in found.rows for cell in row)]
    assert len(tables(hostile())) == 7
    assert sum("\\x1b[31m\\nevil\\x07\\u202e[bold]" in text for text in shown) >= 12
    assert all(text.isprintable() for text in shown)


def test_nor_by_the_way_they_are_printed() -> None:
    out = io.StringIO()
    print_view(hostile(), out)
    assert "[bold]" in out.getvalue(), "markup in names is not interpreted"
    assert all(line.isprintable() for line in out.getvalue().splitlines())


def test_columns_of_figures_are_flush_right() -> None:
    columns = {name for found in tables(FULL) for name in found.columns}
    assert {
        "free",
        "GPUs",
        "GPUs used",
        "GPUs waiting",
        "util",
        "GPU memory",
        "CPU cores",
        "memory",
        "shm",
        "disk",
    } <= (columns & NUMERIC_COLUMNS)


def test_the_headline_is_in_the_time_zone_of_the_configuration() -> None:
    assert headline(ClusterView(at=1_763_262_000.0), "Asia/Shanghai").startswith("2025-11-16 11:00:00 CST, ")
