"""The heat map: means of nodes and groups, what is unknown, restarts, spans, and its bounds."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from monitor.facts.cluster import NodeView
from monitor.history.blocks import BlockError
from monitor.history.buckets import RangeRequest
from monitor.history.heatmap import MAX_HEAT_COLUMNS, MAX_HEAT_ROWS, HeatMap, NameRange, make_heat_map
from monitor.history.model import HOUR_SECONDS, MINUTE_SECONDS
from monitor.history.node_loads import (
    NODE_LOADS_GROUP,
    UNKNOWN_LOAD_CODE,
    NodeLoads,
    unpacked_coarse_loads,
    unpacked_loads,
)
from tests.history.builders import DAY, HOUR, MINUTE, START, Rig, busy
from tests.report.builders import view

Loads = dict[str, float | None]


def see(rig: Rig, loads: Loads, after: float = 0.0) -> None:
    rig.clock.advance(after)
    nodes = tuple(NodeView(name=name) for name in loads)
    rig.see_view(view(*(busy(load, node=name) for name, load in loads.items()), nodes=nodes))


def run(rig: Rig, seconds: float, loads: Loads, every: float = MINUTE) -> None:
    for _ in range(round(seconds / every)):
        see(rig, loads, after=every)


def heat(rig: Rig, span: float = HOUR, nodes: NameRange | None = None) -> HeatMap:
    return rig.reader.heat_map(span, None, nodes or NameRange())


def known(found: HeatMap, row: int = 0) -> list[float]:
    return [value for value in found.rows[row].mean if value is not None]


def test_a_row_per_node_in_natural_order(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    run(rig, 10 * MINUTE, {"gpu-10": 0.2, "gpu-9": 0.8, "gpu-1": None})
    found = heat(rig)
    assert [(row.first, row.last, row.nodes) for row in found.rows] == [
        ("gpu-1", "gpu-1", 1), ("gpu-9", "gpu-9", 1), ("gpu-10", "gpu-10", 1),
    ]  # fmt: skip
    assert (known(found, 0), set(known(found, 1)), set(known(found, 2))) == ([], {0.8}, {0.2})
    assert (found.step_seconds, len(found.rows[0].mean), found.nodes) == (MINUTE, 60, 3)
    assert found.start + 60 * MINUTE > rig.clock.time()
    rig.recorder.close()


@pytest.mark.parametrize(("span", "step"), [(HOUR, 60), (6 * HOUR, 300), (DAY, 1200), (7 * DAY, 7200)])
def test_all_spans_agree_also_after_a_restart(tmp_path: Path, span: float, step: int) -> None:
    rig = Rig(tmp_path)
    run(rig, 30 * HOUR, {"n1": 0.5, "n2": 0.25}, every=5 * MINUTE)
    before = heat(rig, span)
    assert (before.step_seconds, set(known(before, 0)), set(known(before, 1))) == (step, {0.5}, {0.25})
    assert len(before.rows[0].mean) <= MAX_HEAT_COLUMNS
    rig.recorder.close()
    rig.start()
    assert heat(rig, span) == before
    rig.recorder.close()


def test_a_step_without_values_is_unknown_and_not_zero(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    run(rig, 3 * HOUR, {"n1": 0.0})
    run(rig, 3 * HOUR, {"n1": None})
    run(rig, 3 * HOUR, {"n1": 0.4})
    assert heat(rig, DAY).rows[0].mean[-28:] == (*[0.0] * 10, *[None] * 8, *[0.4] * 10)
    rig.recorder.close()


def test_many_nodes_are_grouped_and_a_group_has_its_nodes(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    loads: Loads = {f"gpu-{n}": (n % 3) / 2 for n in range(120)}
    run(rig, 2 * HOUR, loads, every=10 * MINUTE)
    found = heat(rig, 6 * HOUR)
    assert len(found.rows) == 40 <= MAX_HEAT_ROWS
    assert {row.nodes for row in found.rows} == {3}
    assert set(known(found)) == {0.5}  # the mean of 0, 0.5 and 1
    first = found.rows[0]
    single = heat(rig, 6 * HOUR, NameRange(first.first, first.last))
    assert [(row.first, row.nodes, set(known(single, n))) for n, row in enumerate(single.rows)] == [
        ("gpu-0", 1, {0.0}), ("gpu-1", 1, {0.5}), ("gpu-2", 1, {1.0}),
    ]  # fmt: skip
    assert heat(rig, 6 * HOUR, NameRange("gpu-200", None)).rows == ()
    rig.recorder.close()


def test_a_node_that_has_gone_stays_in_the_past(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    run(rig, 2 * HOUR, {"old": 0.5}, every=10 * MINUTE)
    run(rig, 2 * HOUR, {"new": 1.0}, every=10 * MINUTE)
    found = heat(rig, DAY)
    assert [row.first for row in found.rows] == ["new", "old"]
    assert found.rows[0].mean[-1] == 1.0
    assert found.rows[1].mean[-1] is None
    rig.recorder.close()


def test_an_answer_is_kept_for_its_minute(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    run(rig, 10 * MINUTE, {"n1": 0.5})
    first = heat(rig)
    assert heat(rig) is first
    assert heat(rig, nodes=NameRange("n1", "n1")) is not first
    see(rig, {"n1": 0.5}, after=MINUTE)
    assert heat(rig) is not first
    rig.recorder.close()


def test_damage_loses_an_hour_and_nothing_else(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    rig = Rig(tmp_path)
    run(rig, 4 * HOUR, {"n1": 0.5}, every=10 * MINUTE)
    whole = known(heat(rig, DAY))
    rig.recorder.close()
    with closing(sqlite3.connect(rig.path)) as file, file:
        file.execute(
            "UPDATE blocks SET coarse = x'00' WHERE series = ? AND hour = ?", (NODE_LOADS_GROUP, int(START) + HOUR)
        )
    rig.start()
    assert len(known(heat(rig, DAY))) == len(whole) - 3
    assert "an hour of the heat map is lost" in caplog.text
    rig.recorder.close()


def loads_of(*columns: list[int]) -> NodeLoads:
    names = tuple(f"n{number}" for number in range(len(columns[0])))
    return NodeLoads(int(START), MINUTE_SECONDS, names, b"".join(map(bytes, columns)))


def test_longer_points_are_means_of_what_is_known() -> None:
    unknown = [UNKNOWN_LOAD_CODE] * 2
    hour = loads_of(*[[100, 50], [50, UNKNOWN_LOAD_CODE], unknown] * 10, *[unknown] * 30)
    tens = hour.by(600)
    assert tens.codes == bytes([79, 50, 71, 50, 75, 50, *[UNKNOWN_LOAD_CODE] * 6])
    assert hour.by(HOUR_SECONDS).codes == bytes([75, 50])
    layout = hour.layout()
    assert unpacked_loads(hour.start, layout, hour.packed()) == hour
    assert unpacked_coarse_loads(hour.start, 600, layout, hour.packed_coarse()) == tens
    assert unpacked_coarse_loads(hour.start, HOUR_SECONDS, layout, hour.packed_coarse()) == hour.by(HOUR_SECONDS)


def test_a_block_of_other_nodes_is_refused() -> None:
    hour, other = loads_of(*[[1, 2]] * 60), loads_of(*[[1, 2, 3]] * 60)
    with pytest.raises(BlockError):
        unpacked_loads(hour.start, other.layout(), hour.packed())
    with pytest.raises(BlockError):
        unpacked_coarse_loads(hour.start, 600, other.layout(), hour.packed_coarse())


def test_a_point_longer_than_a_step_fills_several() -> None:
    hour = loads_of(*[[100]] * 60).by(600)
    found = make_heat_map(RangeRequest(int(START) - 300, 300, 16), [hour], NameRange())
    assert found.rows[0].mean == (None, *[0.5] * 12, None, None, None)


def test_nothing_is_known_at_first(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    assert heat(rig).rows == ()
    for span in (30, 8 * DAY):
        with pytest.raises(ValueError, match="span"):
            heat(rig, span)
    rig.recorder.close()
