from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from monitor.daemon.metrics.findings import FINDING, FindingFamilies, FindingsSnapshot, service_families
from monitor.facts.findings import LABELS, Finding, Severity
from monitor.facts.services import ServiceFact
from monitor.facts.text import Text
from tests.daemon.metrics.support import lines

NOTE = Text(key="x")


def test_a_finding_and_the_numbers_of_each_rule() -> None:
    found = Finding(
        rule="gpu-idle", severity=Severity.WARNING, cause="idle", headline=NOTE, since=7.0, held=True,
        labels={"node": "n1", "gpu": "3", "job": "bert", "user": "zhang"},
    )  # fmt: skip
    series = (
        'alertname="GpuIdle",cause="idle",cluster="lab",explained="false",gpu="3",held="true",node="n1",'
        'rule="gpu-idle",severity="warning",user="zhang",workload="bert"'
    )
    assert lines(FindingFamilies("lab")(FindingsSnapshot((found,), ("gpu-idle", "node-down")))) == [
        f"gpuwarden_finding{{{series}}} 1.0",
        f"gpuwarden_finding_since_seconds{{{series}}} 7.0",
        'gpuwarden_findings{rule="gpu-idle",severity="critical"} 0.0',
        'gpuwarden_findings{rule="gpu-idle",severity="info"} 0.0',
        'gpuwarden_findings{rule="gpu-idle",severity="warning"} 1.0',
        'gpuwarden_findings{rule="node-down",severity="critical"} 0.0',
        'gpuwarden_findings{rule="node-down",severity="info"} 0.0',
        'gpuwarden_findings{rule="node-down",severity="warning"} 0.0',
    ]


def test_a_symptom_says_so_and_a_beginning_that_nobody_knows_is_none() -> None:
    found = Finding(
        rule="a", severity=Severity.INFO, cause="c", headline=NOTE, labels={"node": "n1"}, explained_by="node-down"
    )
    (line, *_) = lines(FindingFamilies(None)(FindingsSnapshot((found,))))
    assert 'explained="true",held="false"' in line
    assert "cluster=" not in line
    assert not [
        each
        for each in lines(FindingFamilies(None)(FindingsSnapshot((found,))))
        if each.startswith("gpuwarden_finding_since")
    ]


@pytest.mark.parametrize(
    "change",
    [
        {"severity": Severity.CRITICAL},
        {"cause": "other"},
        {"since": 8.0},
        {"explained_by": "node-down"},
        {"held": True},
        {"labels": {"node": "n2"}},
    ],
    ids=lambda change: next(iter(change)),
)
def test_a_changed_finding_is_rendered_again(change: dict[str, Any]) -> None:
    found = Finding(rule="a", severity=Severity.INFO, cause="c", headline=NOTE, labels={"node": "n1"}, since=7.0)
    families, changed = FindingFamilies(None), replace(found, **change)
    before = lines(families(FindingsSnapshot((found,))))
    assert lines(families(FindingsSnapshot((replace(found, headline=Text(key="y")),)))) == before
    after = lines(families(FindingsSnapshot((changed,))))
    assert after == lines(FindingFamilies(None)(FindingsSnapshot((changed,)))) != before


def test_nothing_is_said_before_the_first_look() -> None:
    """Without an evaluation it is unknown whether there are problems."""
    assert lines(FindingFamilies(None)(FindingsSnapshot(None, ("node-down",)))) == []


def test_every_label_of_a_finding_is_one_of_the_series() -> None:
    assert {name for name in LABELS if name != "job"} <= set(FINDING.labels)
    assert "job" not in FINDING.labels


def test_services() -> None:
    up = ServiceFact(name="harbor", kind="harbor", target="", ok=True, at=1.0, latency_seconds=0.25)
    down = ServiceFact(name="portal", kind="http", target="", ok=False, at=1.0)
    assert lines(service_families((up, down))) == [
        'gpuwarden_service_up{service="harbor"} 1.0',
        'gpuwarden_service_up{service="portal"} 0.0',
        'gpuwarden_service_probe_duration_seconds{service="harbor"} 0.25',
    ]
