"""What the history records, and how values become 16-bit codes."""

from __future__ import annotations

import math
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from monitor.facts.base import Fact

MINUTE_SECONDS = 60
HOUR_SECONDS = 3600
COARSE_SECONDS = 600
FINE_POINTS = HOUR_SECONDS // MINUTE_SECONDS  # of an hour
COARSE_POINTS = HOUR_SECONDS // COARSE_SECONDS
FINE_SPAN_SECONDS = 24 * HOUR_SECONDS
SPAN_SECONDS = 7 * FINE_SPAN_SECONDS
MAX_NAME_CHARS = 512  # of a node and a mount, or of a namespace and a pod
CLUSTER = "cluster"  # name of the only entity of HistorySubject.CLUSTER
UNKNOWN_CODE = 0xFFFF
MAX_CODE = UNKNOWN_CODE - 1
_MAX_GROUPS = 32  # of each subject that does not belong to a node
_COUNT_LIMIT = 100  # GPUs; below it hundredths are kept, above it whole GPUs
_LOG_FACTOR = 1000.0  # codes per power of two: steps of 0.07 %

Point = tuple[float, float | None]


class HistorySubject(StrEnum):
    """What a figure is about.

    Names: `node/index` of a GPU, `node:mount` of a disk, `namespace/name` of pods and jobs.
    """

    CLUSTER = "cluster"
    NODE = "node"
    GPU = "gpu"
    DISK = "disk"
    POD = "pod"
    JOB = "job"
    USER = "user"
    QUEUE = "queue"


class HistoryMetric(StrEnum):
    """A recorded figure."""

    UTILIZATION = "utilization"  # mean of the GPUs
    GPUS = "gpus"  # held by live pods
    FREE = "free"  # GPUs
    WAITING = "waiting"  # GPUs requested by waiting pods
    MEMORY = "memory"  # used share: of the GPU, or of the node
    POWER = "power"
    TEMPERATURE = "temperature"
    CPU = "cpu"
    SHM = "shm"
    RECEIVED = "received"
    TRANSMITTED = "transmitted"
    USED = "used"  # share of a disk


class HistoryUnit(StrEnum):
    """Unit of a figure."""

    RATIO = "ratio"
    GPUS = "gpus"
    WATTS = "watts"
    CELSIUS = "celsius"
    BYTES = "bytes"
    BYTES_PER_SECOND = "bytes-per-second"


class Encoding(Protocol):
    """Monotonic mapping of values from 0 up to codes. Larger values than it knows become the largest."""

    def encode(self, value: float) -> int: ...

    def decode(self, code: int) -> float: ...


@dataclass(frozen=True)
class LinearEncoding:
    """Equal steps."""

    codes_per_unit: float

    def encode(self, value: float) -> int:
        return min(MAX_CODE, max(0, int(value * self.codes_per_unit + 0.5)))

    def decode(self, code: int) -> float:
        return code / self.codes_per_unit


class CountEncoding:
    """GPUs: hundredths where shares matter, whole ones where there are many."""

    def encode(self, value: float) -> int:
        if value < _COUNT_LIMIT:
            return max(0, int(value * 100 + 0.5))
        return min(MAX_CODE, int(value + 0.5) + 99 * _COUNT_LIMIT)

    def decode(self, code: int) -> float:
        return code / 100 if code < 100 * _COUNT_LIMIT else float(code - 99 * _COUNT_LIMIT)


class LogEncoding:
    """Bytes, from one to all that exist, with the same relative precision."""

    def encode(self, value: float) -> int:
        return min(MAX_CODE, int(math.log2(max(0.0, value) + 1) * _LOG_FACTOR + 0.5))

    def decode(self, code: int) -> float:
        return float(2 ** (code / _LOG_FACTOR) - 1)


_RATIO, _FINE_RATIO = LinearEncoding(200.0), LinearEncoding(10_000.0)
_COUNT, _LOG = CountEncoding(), LogEncoding()
ENCODINGS: dict[HistoryMetric, Encoding] = {
    HistoryMetric.UTILIZATION: _RATIO,
    HistoryMetric.GPUS: _COUNT,
    HistoryMetric.FREE: _COUNT,
    HistoryMetric.WAITING: _COUNT,
    HistoryMetric.MEMORY: _RATIO,
    HistoryMetric.POWER: LinearEncoding(0.5),
    HistoryMetric.TEMPERATURE: LinearEncoding(1.0),
    HistoryMetric.CPU: _RATIO,
    HistoryMetric.SHM: _LOG,
    HistoryMetric.RECEIVED: _LOG,
    HistoryMetric.TRANSMITTED: _LOG,
    HistoryMetric.USED: _FINE_RATIO,  # forecasts need slow growth
}
UNITS: dict[HistoryMetric, HistoryUnit] = {
    HistoryMetric.UTILIZATION: HistoryUnit.RATIO,
    HistoryMetric.GPUS: HistoryUnit.GPUS,
    HistoryMetric.FREE: HistoryUnit.GPUS,
    HistoryMetric.WAITING: HistoryUnit.GPUS,
    HistoryMetric.MEMORY: HistoryUnit.RATIO,
    HistoryMetric.POWER: HistoryUnit.WATTS,
    HistoryMetric.TEMPERATURE: HistoryUnit.CELSIUS,
    HistoryMetric.CPU: HistoryUnit.RATIO,
    HistoryMetric.SHM: HistoryUnit.BYTES,
    HistoryMetric.RECEIVED: HistoryUnit.BYTES_PER_SECOND,
    HistoryMetric.TRANSMITTED: HistoryUnit.BYTES_PER_SECOND,
    HistoryMetric.USED: HistoryUnit.RATIO,
}
METRICS: dict[HistorySubject, tuple[HistoryMetric, ...]] = {
    HistorySubject.CLUSTER: (
        HistoryMetric.UTILIZATION, HistoryMetric.GPUS, HistoryMetric.FREE, HistoryMetric.WAITING,
    ),
    HistorySubject.NODE: (
        HistoryMetric.UTILIZATION, HistoryMetric.FREE, HistoryMetric.CPU, HistoryMetric.MEMORY, HistoryMetric.SHM,
        HistoryMetric.RECEIVED, HistoryMetric.TRANSMITTED,
    ),
    HistorySubject.GPU: (
        HistoryMetric.UTILIZATION, HistoryMetric.MEMORY, HistoryMetric.POWER, HistoryMetric.TEMPERATURE,
    ),
    HistorySubject.DISK: (HistoryMetric.USED,),
    HistorySubject.POD: (HistoryMetric.UTILIZATION, HistoryMetric.GPUS),
    HistorySubject.JOB: (HistoryMetric.UTILIZATION, HistoryMetric.GPUS),
    HistorySubject.USER: (HistoryMetric.UTILIZATION, HistoryMetric.GPUS),
    HistorySubject.QUEUE: (HistoryMetric.UTILIZATION, HistoryMetric.GPUS, HistoryMetric.WAITING),
}  # fmt: skip

Entity = tuple[HistorySubject, str]
Sample = tuple[HistorySubject, str, tuple[float | None, ...]]  # values in the order of METRICS


class HistorySeries(Fact, frozen=True, kw_only=True):
    """One figure over time: mean and maximum of each step, None where it is unknown."""

    metric: HistoryMetric
    unit: HistoryUnit
    mean: tuple[float | None, ...]
    max: tuple[float | None, ...]


class HistoryRange(Fact, frozen=True, kw_only=True):
    """Figures of one entity from `start` on, one value per step."""

    subject: HistorySubject
    name: str
    start: int
    step_seconds: int
    series: tuple[HistorySeries, ...] = ()

    def points(self, metric: HistoryMetric) -> tuple[Point, ...]:
        """Times and means of a figure, oldest first, without the unknown time before the first value."""
        means = next((series.mean for series in self.series if series.metric is metric), ())
        first = next((index for index, value in enumerate(means) if value is not None), len(means))
        return tuple((self.start + index * self.step_seconds, means[index]) for index in range(first, len(means)))


def group_of(subject: HistorySubject, name: str) -> str:
    """Name of the group whose figures are stored together: those of a node, or a part of all pods, users, ..."""
    if subject is HistorySubject.NODE:
        return f"node/{name}"
    if subject is HistorySubject.GPU:
        return f"node/{name.rpartition('/')[0]}"
    if subject is HistorySubject.DISK:
        return f"node/{name.partition(':')[0]}"
    return f"{subject}/{zlib.crc32(name.encode(errors='replace')) % _MAX_GROUPS}"


def disk_name(node: str, mount: str) -> str:
    """Name of a disk."""
    return f"{node}:{mount}"


def coarse_codes(metric: HistoryMetric, means: Sequence[int], tops: Sequence[int]) -> tuple[int, int]:
    """Mean and maximum of several minutes as codes."""
    known = [code for code in means if code != UNKNOWN_CODE]
    if not known:
        return UNKNOWN_CODE, UNKNOWN_CODE
    top = max(code for code in tops if code != UNKNOWN_CODE)
    if known.count(known[0]) == len(known):
        return known[0], top
    encoding = ENCODINGS[metric]
    if isinstance(encoding, LinearEncoding):
        return (2 * sum(known) + len(known)) // (2 * len(known)), top
    return encoding.encode(sum(map(encoding.decode, known)) / len(known)), top
