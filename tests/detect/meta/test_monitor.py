from __future__ import annotations

from typing import Any

import pytest

from monitor.base.state_problems import StateProblem, StateProblemKind
from monitor.detect.meta.monitor import CAUSES, KUBERNETES_DOWN, RULE, MonitorState, with_monitor_findings
from monitor.facts.agents import AgentFact
from monitor.facts.cluster import SourceView
from monitor.facts.findings import Finding, Severity
from monitor.facts.text import Text
from monitor.i18n import LANGUAGES
from monitor.i18n.notes import sentence

START = 1_000_000.0
NOW = START + 600.0


def lost(name: str, since: float | None = NOW - 90.0, why: str = "failing; connection refused") -> SourceView:
    return SourceView(name=name, ok=False, why=why, since=since)


def silent(node: str, since: float = NOW - 200.0) -> AgentFact:
    return AgentFact(target=f"{node}:9835", node=node, silent_since=since, error="timed out", failures=9)


def heard(node: str, at: float = NOW - 5.0) -> AgentFact:
    return AgentFact(target=f"{node}:9835", node=node, received_at=at)


def found(rule: str, **labels: str) -> Finding:
    return Finding(rule=rule, severity=Severity.WARNING, cause="x", labels=labels, headline=Text(key="x"))


def observed(**given: Any) -> MonitorState:
    return MonitorState(**({"started_at": START, "looked_at": NOW - 1.0} | given))


SAID: list[tuple[str, MonitorState, list[tuple[str, str]]]] = [
    ("all is seen", observed(sources=(SourceView(name="pods", ok=True),), agents=[heard("n1"), heard("n2")]), []),
    ("pods are not", observed(sources=(lost("pods"),)), [("api-server", "monitor/api-server")]),
    (
        "what else is lost with pods is one finding",
        observed(sources=(lost("nodes"), lost("events"), lost("jobs.batch"))),
        [("api-server", "monitor/api-server")],
    ),
    (
        "something smaller is lost",
        observed(sources=(lost("events"), lost("jobs.batch"))),
        [("source", "monitor/events"), ("source", "monitor/jobs.batch")],
    ),
    ("only just lost", observed(sources=(lost("pods", NOW - 59.0),)), []),
    ("never seen", observed(sources=(lost("pods", None, "starting"),)), [("api-server", "monitor/api-server")]),
    ("there is no Kubernetes", observed(sources=(lost("kubernetes", None, "switched off"),)), []),
    ("one agent is silent", observed(agents=[heard("n1"), silent("n2")]), []),
    ("all are", observed(agents=[silent("n1"), silent("n2")]), [("agents", "monitor/agents")]),
    ("all are, but not for long", observed(agents=[silent("n1"), silent("n2", NOW - 30.0)]), []),
    ("the only one is a rule's business", observed(agents=[silent("n1")]), []),
    ("nobody asks them", observed(agents=[heard("n1", NOW - 130.0), silent("n2")]), [("agents", "monitor/agents")]),
    ("nobody has looked lately", observed(looked_at=NOW - 61.0), [("detection", "monitor/detection")]),
    ("nobody has ever looked", observed(looked_at=None), [("detection", "monitor/detection")]),
    ("its files are too large", observed(state_excess="2 GiB of 1.5 GiB"), [("state-size", "monitor/state-size")]),
    (
        "each kind of problem with the state is one finding, right after the start",
        observed(started_at=NOW, looked_at=None, state=(
            StateProblem(StateProblemKind.DAMAGED, "/s/alerts.db.damaged-1", "malformed; 3 rows were kept"),
            StateProblem(StateProblemKind.UNWRITABLE, "/s/alerts.db", "read-only"),
            StateProblem(StateProblemKind.UNWRITABLE, "/s/audit.db", "read-only"),
            StateProblem(StateProblemKind.NEWER, "/s/record.db", "its schema version is 7"),
        )),
        [(cause, f"monitor/{cause}") for cause in ("state", "state-damaged", "state-newer")],
    ),
]  # fmt: skip


@pytest.mark.parametrize(("name", "given", "expect"), SAID, ids=[row[0] for row in SAID])
def test_what_is_said_of_the_monitor(name: str, given: MonitorState, expect: list[tuple[str, str]]) -> None:
    own = with_monitor_findings((), given, NOW)
    assert [(each.cause, each.labels["service"]) for each in own] == expect
    assert {each.rule for each in own} <= {RULE.rule}
    assert {each.cause for each in own} <= set(CAUSES)
    for lang in LANGUAGES:
        for finding in own:
            for note in (finding.headline, *finding.advice):
                assert note.key not in sentence(note, lang)


def test_nothing_is_missed_in_the_first_minute() -> None:
    deaf = (silent("n1", START), silent("n2", START))
    blind = MonitorState(started_at=START, sources=(lost("pods", START - 500.0),), agents=deaf)
    assert with_monitor_findings((), blind, START + 59.0) == ()
    assert len(with_monitor_findings((), blind, START + 60.0)) == 3


def test_a_dead_api_server_is_told_once() -> None:
    down = found("service-down", service="kubernetes")
    assert down.key == KUBERNETES_DOWN
    first, second = with_monitor_findings((down,), observed(sources=(lost("pods"),)), NOW)
    assert (first, second.explained_by) == (down, KUBERNETES_DOWN)


def test_that_nobody_is_heard_explains_each_who_is_silent() -> None:
    before = (found("agent-silent", node="n1"), found("disk-full", node="n1"))
    silent_n1, disk, deaf = with_monitor_findings(before, observed(agents=[silent("n1"), silent("n2")]), NOW)
    assert silent_n1.explained_by == deaf.key
    assert disk.explained_by is None
    assert with_monitor_findings(before, observed(agents=[silent("n1"), heard("n2")]), NOW) == before
