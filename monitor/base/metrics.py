"""Metric families described as tables, and their text format."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.utils import floatToGoString

T = TypeVar("T")
Value = float | int | bool | None
Row = tuple[str, str, Callable[[T], Value]]  # name, help, reader of the value
Subjects = Iterable[tuple[Sequence[str], T]]  # subjects with their label values


class MetricName(NamedTuple):
    """A metric as listed in the documentation. A counter is listed by the name of its samples."""

    name: str
    kind: str
    help: str
    labels: tuple[str, ...]


def label(text: str | int | None) -> str:
    """Label value: empty if unknown, always valid UTF-8 (a path or process name need not be)."""
    if text is None:
        return ""
    text = str(text)
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode("utf-8")


def gauges(rows: Sequence[Row[T]], names: Sequence[str], things: Sequence[tuple[Sequence[str], T]]) -> Iterable[Metric]:
    """Gauge families that have samples, for subjects with their label values."""
    yield from _families(GaugeMetricFamily, rows, names, things)


def counters(
    rows: Sequence[Row[T]], names: Sequence[str], things: Sequence[tuple[Sequence[str], T]]
) -> Iterable[Metric]:
    """Counter families that have samples; `_total` is added to the names."""
    yield from _families(CounterMetricFamily, rows, names, things)


@dataclass(frozen=True)
class MetricTable(Generic[T]):
    """Metrics of one kind of subject: the labels that identify it, and the values read from it."""

    labels: tuple[str, ...]
    gauges: tuple[Row[T], ...] = ()
    counters: tuple[Row[T], ...] = ()

    def families(self, things: Subjects[T]) -> Iterable[Metric]:
        """Families of subjects with their label values. Of subjects with equal labels, the first counts.

        Empty labels are omitted: they mean the same to Prometheus, and in a large cluster they are most of the text.
        """
        unlike: dict[Sequence[str], T] = {}
        for labels, thing in things:
            unlike.setdefault(labels, thing)
        rows = [
            ({name: value for name, value in zip(self.labels, values, strict=True) if value}, thing)
            for values, thing in unlike.items()
        ]
        yield from (_family(Metric(name, text, "gauge"), name, read, rows) for name, text, read in self.gauges)
        for name, text, read in self.counters:
            yield _family(Metric(name, text, "counter"), f"{name}_total", read, rows)

    def names(self) -> Iterable[MetricName]:
        """Metrics of this table."""
        yield from (MetricName(name, "gauge", text, self.labels) for name, text, _ in self.gauges)
        yield from (MetricName(f"{name}_total", "counter", text, self.labels) for name, text, _ in self.counters)


def text_of(families: Iterable[Metric | bytes]) -> bytes:
    """Prometheus text of the gauges and counters that have samples; families that are text already stay as they are.

    Byte for byte the output of prometheus_client's `generate_latest` in half the time, which matters because writing
    tens of thousands of series dominates the cost of a scrape.
    """
    return b"".join(texts_of(families))


def texts_of(families: Iterable[Metric | bytes]) -> Iterator[bytes]:
    """The same family by family, so that text which does not change is kept once."""
    for family in families:
        if isinstance(family, bytes):
            yield family
        elif family.samples:
            name = f"{family.name}_total" if family.type == "counter" else family.name
            samples = [sample_text(each.name, braced_labels(each.labels), each.value) for each in family.samples]
            yield family_text(name, family.documentation, family.type, samples)


def family_text(name: str, text: str, kind: str, samples: Iterable[str]) -> bytes:
    """A family with its samples, as `sample_text` returns them."""
    return "".join((f"# HELP {name} {_escaped(text)}\n# TYPE {name} {kind}\n", *samples)).encode()


def sample_text(name: str, braced: str, value: float) -> str:
    """Line of a sample with labels as `braced_labels` returns them."""
    return f"{name}{braced} {_number(value)}\n"


def _number(value: float) -> str:
    return str(floatToGoString(value))  # type: ignore[no-untyped-call]  # the library has no types


def braced_labels(labels: Mapping[str, str]) -> str:
    """Labels in braces, sorted by name; nothing if there are none."""
    if not labels:
        return ""
    return "{" + ",".join([f'{name}="{_quoted(value)}"' for name, value in sorted(labels.items())]) + "}"


def _quoted(text: str) -> str:
    return _escaped(text).replace('"', '\\"') if '"' in text or "\\" in text or "\n" in text else text


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n")


def _family(family: Metric, name: str, read: Callable[[T], Value], rows: list[tuple[dict[str, str], T]]) -> Metric:
    for labels, thing in rows:
        value = read(thing)
        if value is not None:
            family.add_sample(name, labels, float(value))
    return family


def _families(
    kind: type[GaugeMetricFamily] | type[CounterMetricFamily],
    rows: Sequence[Row[T]],
    names: Sequence[str],
    things: Sequence[tuple[Sequence[str], T]],
) -> Iterable[Metric]:
    for name, text, read in rows:
        family = kind(name, text, labels=names)
        for labels, thing in things:
            value = read(thing)
            if value is not None:
                family.add_metric(labels, float(value))
        if family.samples:
            yield family
