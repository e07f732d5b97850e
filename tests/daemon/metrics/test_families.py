"""The whole scrape: a failing area does not affect the others, and every metric is in the catalogue."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.core import Metric
from prometheus_client.parser import text_string_to_metric_families

from monitor.daemon.metrics import MODULES, DaemonMetrics, MetricArea, catalogue, own
from monitor.daemon.metrics.own import DaemonStatus
from tests.daemon.metrics.support import assert_promtool_is_content, lines, sampled

HERE = Path(own.__file__).parent


def area(name: str, read: Any = lambda: 7.0, families: Any = None) -> MetricArea:
    def render(value: float) -> Iterable[Metric]:
        metric = Metric(name, "Something.", "gauge")
        metric.add_sample(name, {}, value)
        yield metric

    return MetricArea(name, read, families or render)


def fail(*_: object) -> Any:
    raise RuntimeError("odd")


def render_badly(_: object) -> Iterable[Metric | bytes]:
    yield from area("half").families(1.0)
    raise RuntimeError("odd")


@pytest.mark.parametrize(
    "broken", [area("b", read=fail), area("b", families=render_badly)], ids=["cannot be read", "cannot be rendered"]
)
def test_an_area_that_fails_costs_nothing_else_and_is_counted(
    broken: MetricArea, caplog: pytest.LogCaptureFixture
) -> None:
    exposition = DaemonMetrics((area("a"), broken, area("c")))
    with caplog.at_level(logging.CRITICAL):
        exposition.render()
        found = sampled(exposition.render().decode())
    assert found == [
        "a 7.0",
        "c 7.0",
        'gpuwarden_exposition_failures_total{area="a"} 0.0',
        'gpuwarden_exposition_failures_total{area="b"} 2.0',
        'gpuwarden_exposition_failures_total{area="c"} 0.0',
    ]


def test_the_same_values_are_rendered_once() -> None:
    rendered, values = [], [(1,), (2,)]

    def render(value: object) -> Iterable[Metric]:
        rendered.append(value)
        return ()

    exposition = DaemonMetrics((MetricArea("a", lambda: values[0], render),))
    exposition.render()
    exposition.render()
    values.pop(0)
    exposition.render()
    assert rendered == [(1,), (2,)]


def test_what_the_daemon_knows_of_itself() -> None:
    assert lines(own.families(DaemonStatus(version="1.2", now=10.0, view_at=8.0))) == [
        'gpuwarden_daemon_info{version="1.2"} 1.0',
        "gpuwarden_view_age_seconds 2.0",
    ]
    known = DaemonStatus(
        version="1.2", now=8.0, view_at=9.0, evaluated_at=7.0, evaluation_seconds=0.5, lease_held=False,
        reload_ok=False, loaded_at=5.0,
    )  # fmt: skip
    assert lines(own.families(known))[1:] == [
        "gpuwarden_view_age_seconds 0.0",
        "gpuwarden_last_look_seconds 7.0",
        "gpuwarden_look_duration_seconds 0.5",
        "gpuwarden_lease_held 0.0",
        "gpuwarden_config_last_reload_successful 0.0",
        "gpuwarden_config_last_reload_success_timestamp_seconds 5.0",
    ]


def test_the_catalogue_names_everything_once_and_prometheus_likes_the_names() -> None:
    names = catalogue()
    assert len({each.name for each in names}) == len(names) > 40
    assert all(each.name.startswith("gpuwarden_") and each.help.endswith(".") for each in names)
    assert not [each.name for each in names if "job" in each.labels]
    text = "".join(f"# HELP {n.name} {n.help}\n# TYPE {n.name} {n.kind}\n{n.name} 1\n" for n in names)
    assert_promtool_is_content(text)
    assert len(list(text_string_to_metric_families(text))) == len(names)


def test_every_area_s_file_is_in_the_catalogue() -> None:
    files = {path.stem for path in HERE.glob("*.py")} - {"__init__", "collect", "label_values"}
    assert files == {module.__name__.rpartition(".")[2] for module in MODULES}
