"""Blocks keep every code, stay small, and reject what is damaged."""

from __future__ import annotations

import random
import zlib
from array import array

import pytest

from monitor.history.blocks import (
    BlockError,
    CodeColumn,
    UnpackedBlock,
    decode_layout,
    encode_layout,
    layout_of,
    pack,
    pack_column,
    positions,
    unpack_column,
)
from monitor.history.model import ENCODINGS, METRICS, UNKNOWN_CODE, HistoryMetric, HistorySubject, coarse_codes

ENTITIES = [(HistorySubject.GPU, "n1/0"), (HistorySubject.GPU, "n1/1"), (HistorySubject.NODE, "n1")]


@pytest.mark.parametrize("points", [6, 60])
@pytest.mark.parametrize("seed", range(3))
def test_what_is_packed_is_unpacked(points: int, seed: int) -> None:
    chance = random.Random(seed)
    series = []
    for _ in range(20):
        means = array("H", [chance.choice([0, 1, 200, chance.randrange(0x10000), UNKNOWN_CODE]) for _ in range(points)])
        tops = array("H", [max(code, chance.randrange(0x10000)) for code in means])
        series.append(CodeColumn(means, tops))
    block = UnpackedBlock(pack(series), points)
    assert block.count == 20
    assert [block.series(number) for number in range(20)] == series
    with pytest.raises(BlockError):
        block.series(20)
    assert unpack_column(pack_column(series[0])) == series[0]


def test_eight_gpus_of_an_hour_take_little() -> None:
    chance = random.Random(1)
    series = []
    for _ in range(8):
        for level, spread in ((180, 6), (150, 0), (150, 8), (65, 1)):
            means = array("H", [round(chance.gauss(level, spread)) for _ in range(60)])
            series.append(CodeColumn(means, array("H", [mean + abs(round(chance.gauss(0, spread))) for mean in means])))
    assert len(pack(series)) < 3000


@pytest.mark.parametrize("body", [b"", b"no zlib", zlib.compress(b"xyz"), zlib.compress(b"0123" * 60)[:-5]])
def test_a_damaged_block_is_an_error(body: bytes) -> None:
    with pytest.raises(BlockError):
        UnpackedBlock(body, 60)
    with pytest.raises(BlockError):
        decode_layout(body)


def test_a_bomb_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("monitor.history.blocks.MAX_BLOCK_BYTES", 1000)
    with pytest.raises(BlockError):
        unpack_column(zlib.compress(bytes(4000)))


def test_a_layout_finds_the_series_of_an_entity() -> None:
    layout = decode_layout(encode_layout(layout_of(ENTITIES, METRICS)))
    assert positions(layout, HistorySubject.GPU, "n1/1") == {
        "utilization": 4, "memory": 5, "power": 6, "temperature": 7,
    }  # fmt: skip
    assert positions(layout, HistorySubject.NODE, "n1")["utilization"] == 8
    assert positions(layout, HistorySubject.GPU, "n2/1") == {}


VALUES = [
    (HistoryMetric.UTILIZATION, 0.375, 0.375),
    (HistoryMetric.UTILIZATION, 0.0, 0.0),
    (HistoryMetric.USED, 0.98765, 0.9877),
    (HistoryMetric.GPUS, 0.25, 0.25),
    (HistoryMetric.GPUS, 99.99, 99.99),
    (HistoryMetric.GPUS, 100.0, 100.0),
    (HistoryMetric.GPUS, 8000.0, 8000.0),
    (HistoryMetric.POWER, 701.0, 702.0),
    (HistoryMetric.POWER, 1e9, 131068.0),
    (HistoryMetric.TEMPERATURE, -3.0, 0.0),
]


@pytest.mark.parametrize(("metric", "value", "kept"), VALUES)
def test_values_are_kept_as_precisely_as_charts_need(metric: HistoryMetric, value: float, kept: float) -> None:
    encoding = ENCODINGS[metric]
    assert encoding.decode(encoding.encode(value)) == pytest.approx(kept)


@pytest.mark.parametrize("value", [0, 1, 1500, 3 * 2**30, 2**50])
def test_bytes_have_a_relative_precision(value: int) -> None:
    encoding = ENCODINGS[HistoryMetric.SHM]
    assert encoding.decode(encoding.encode(value)) == pytest.approx(value, rel=0.001)


def test_ten_minutes_have_the_mean_of_the_known_ones_and_the_highest() -> None:
    assert coarse_codes(HistoryMetric.UTILIZATION, [10, UNKNOWN_CODE, 20], [15, UNKNOWN_CODE, 90]) == (15, 90)
    assert coarse_codes(HistoryMetric.UTILIZATION, [UNKNOWN_CODE], [UNKNOWN_CODE]) == (UNKNOWN_CODE, UNKNOWN_CODE)
    encode, decode = ENCODINGS[HistoryMetric.SHM].encode, ENCODINGS[HistoryMetric.SHM].decode
    mean, _ = coarse_codes(HistoryMetric.SHM, [encode(1000), encode(3000)], [encode(1000), encode(3000)])
    assert decode(mean) == pytest.approx(2000, rel=0.002)  # of the bytes, not of their logarithms
