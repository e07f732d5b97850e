"""Evaluating only what has changed or is due gives the same findings as evaluating everything."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from string import Formatter
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from msgspec import structs

from monitor.detect.base import AGE, Limits, Rule
from monitor.detect.engine import Engine, detect
from monitor.detect.history import DetectionHistory
from monitor.detect.rules import RULES, gpu_underused
from monitor.facts.findings import Finding
from monitor.facts.text import Text
from monitor.i18n import CATALOGS
from tests.detect import changing_world as world_of
from tests.detect.changing_world import NODES, PODS, World

Step = tuple[Any, ...]
Round = list[Step]  # changes that one evaluation sees together
LIMITS = {"gpu-underused": Limits(gpu_underused.Limits(window=300.0))}
PAUSES_SECONDS = (0.5, 5.0, 30.0, 31.0, 61.0, 121.0, 305.0, 601.0, 1801.0, 4000.0, -600.0)
# Rules whose results depend on how often they are evaluated, with the reason.
NOT_COMPARABLE: dict[str, str] = {}
SAMPLED_VALUES = {"ratio"}  # means over samples; each evaluation may take one

HOLDS: Round = [("part", "n1", "pod_devices", "of a pod"), ("part", "n1", "gpu_processes", "of a pod")]
# Changes after which each rule finds something.
RECIPES: dict[str, list[Round]] = {
    "actions-refused": [[("part", "n1", "actions", "one refused")], [("part", "n1", "actions", "two refused")]],
    "agent-silent": [[("agent", "n1", "silent")], [("wait", 121.0)]],
    "capacity-mismatch": [[("node", "n1", "has one GPU")], [("wait", 601.0)]],
    "disk-filling": [[("fill", "n1", 30.0 + 2 * step), ("wait", 300.0)] for step in range(12)],
    "disk-full": [[("part", "n1", "disk", "full")]],
    "disk-io-saturated": [[("part", "n1", "disk_io", "saturated")], *([("wait", 60.0)] for _ in range(11))],
    "gpu-fault": [[("part", "n1", "gpu", "lost")]],
    "gpu-fragmented": [[("pod", "p1", "runs on n2"), ("pod", "p2", "waits for two")], [("wait", 601.0)]],
    "gpu-ghost": [[("part", "n1", "gpu", "ghost")], [("wait", 601.0)]],
    "gpu-hot": [[("part", "n1", "gpu", "hot")], [("wait", 601.0)]],
    "gpu-idle": [[*HOLDS], [("wait", 4000.0)], [("wait", 4000.0)]],
    "gpu-orphan": [[("part", "n1", "gpu_processes", "of the host")], [("wait", 61.0)]],
    "gpu-phantom": [[("part", "n1", "pod_devices", "of a pod that is gone")], *([("wait", 601.0)] for _ in range(2))],
    "gpu-underused": [[*HOLDS, ("part", "n1", "gpu", "underused")], *([("wait", 60.0)] for _ in range(8))],
    "gpu-wedged": [[("part", "n1", "gpu_processes", "stuck")], [("wait", 601.0)]],
    "gpu-zombie": [[*HOLDS, ("pod", "p0", "has finished")], [("wait", 61.0)], [("wait", 61.0)]],
    "image-cache-large": [[("part", "n1", "images", "large")]],
    "image-oversize": [[("part", "n1", "images", "large")]],
    "image-pull": [[("pod", "p1", "is refused"), ("event", "p1", "refused")]],
    "image-pull-slow": [[("event", "p1", "pulled"), ("pod", "p1", "runs on n1")]],
    "kernel-fault": [[("part", "n1", "kernel", "several")]],
    "mass-deletion": [[("agent", "n2", "gone"), ("wait", 61.0)], [("part", "n1", "disk", "NAS has lost data")]],
    "mount-lost": [[("part", "n1", "mounts", "hung")], [("wait", 61.0)]],
    "node-condition": [[("node", "n1", "marked as faulty")], [("wait", 61.0)]],
    "node-down": [[("node", "n1", "silent")]],
    "pod-pending": [[("pod", "p1", "waits")], [("wait", 601.0)]],
    "pod-silent": [[*HOLDS, ("part", "n1", "logs", "large")], [("wait", 7300.0)]],
    "pod-start-failed": [
        [("pod", "p1", "has just crashed"), ("part", "n1", "log_tails", "none")],
        [("part", "n1", "log_tails", "of a crash")],
        [("part", "n1", "log_tails", "unknown")],
        [("pod", "p2", "has just failed"), ("part", "n1", "log_tails", "none")],
        [("part", "n1", "log_tails", "of a crash")],
        [("pod", "p1", "has no driver")],
        [("pod", "p2", "has no driver")],
    ],
    "pod-stuck-creating": [
        [("pod", "p1", "is created"), ("event", "p1", "server gone")],
        [("wait", 601.0)],
        [("pod", "p2", "is created"), ("event", "p2", "server gone")],
    ],
    "pod-stuck-terminating": [[("pod", "p1", "is deleted")], [("wait", 601.0)]],
    "quota-exhausted": [[("quotas", "used up"), ("event", "p1", "over quota")]],
    "registry-unreachable": [[("part", "n1", "probes", "refused")], [("wait", 35.0)]],
    "service-down": [[("services", "refused")], [("wait", 25.0)]],
    "shm-pressure": [[("part", "n1", "containers", "of a pod"), ("part", "n1", "shm", "full")]],
}  # fmt: skip


def _steps() -> Iterable[Step]:
    """All changes of the world."""
    yield from (("wait", seconds) for seconds in PAUSES_SECONDS)
    yield from (("agent", name, state) for name in NODES for state in ("answers", "silent", "gone"))
    yield from (("node", name, state) for name in NODES for state in world_of.NODE_STATES[name])
    yield from (("pod", name, state) for name in PODS for state in world_of.POD_STATES[name])
    yield from (("event", name, variant) for name in PODS for variant in world_of.EVENTS[name])
    parts = [(name, part) for name in NODES for part in world_of.PARTS[name]]
    yield from (("part", name, part, variant) for name, part in parts for variant in world_of.PARTS[name][part])
    yield from (("sources", variant) for variant in world_of.SOURCES)
    yield from (("services", variant) for variant in world_of.SERVICES)
    yield from (("quotas", variant) for variant in world_of.QUOTAS)
    yield from (("deletions", variant) for variant in world_of.DELETIONS)


def _by_kind() -> st.SearchStrategy[Step]:
    """A change; each kind is equally likely."""
    kinds: dict[str, list[Step]] = {}
    for step in _steps():
        kinds.setdefault(step[0], []).append(step)
    pause = st.sampled_from(kinds.pop("wait"))
    return st.one_of(pause, *(st.sampled_from(steps) for steps in kinds.values()), st.sampled_from(kinds["part"]))


recipes = st.lists(st.sampled_from(sorted(RECIPES)), max_size=2).map(
    lambda names: [r for n in names for r in RECIPES[n]]
)
rounds = st.lists(st.lists(_by_kind(), min_size=1, max_size=3), min_size=1, max_size=6)


def compare(changes: Iterable[Round], rules: Sequence[Rule] = RULES) -> list[set[str]]:
    """Make the changes, compare the findings after each round, and return the rules that found something."""
    world, engine, found_by = World(), Engine(rules, LIMITS), []
    engine.evaluate(world.context())
    for together in changes:
        for step, *arguments in together:
            getattr(world, step)(*arguments)
        context = world.context()
        before = msgspec.json.decode(msgspec.json.encode(engine.history), type=DetectionHistory)
        found = engine.evaluate(context)
        assert comparable(found) == comparable(detect(rules, LIMITS, context, before).findings), together
        found_by.append({finding.rule for finding in found})
    return found_by


def comparable(findings: Iterable[Finding]) -> dict[str, Finding]:
    """Findings by key, with what their texts state."""
    return {finding.key: _stated(finding) for finding in findings if finding.rule not in NOT_COMPARABLE}


def _stated(finding: Finding) -> Finding:
    changes = {name: tuple(map(_current, getattr(finding, name))) for name in ("evidence", "advice")}
    return structs.replace(finding, headline=_current(finding.headline), **changes)


def _current(text: Text) -> Text:
    """A text with the values that it states, except for those that are only renewed from time to time."""
    named = [(name, spec) for _, name, spec, _ in Formatter().parse(CATALOGS["en"][text.key]) if name]
    current = {name for name, spec in named if name == AGE or spec != "duration"} - SAMPLED_VALUES
    return Text(key=text.key, values={name: text.values[name] for name in current})


@settings(
    max_examples=60,
    deadline=None,
    derandomize=True,
    phases=(Phase.generate,),
    suppress_health_check=(HealthCheck.too_slow, HealthCheck.data_too_large),
)
@given(recipes, rounds)
def test_findings_are_those_of_a_complete_evaluation(recipe: list[Round], changes: list[Round]) -> None:
    compare(recipe + changes)


N1 = world_of.PARTS["n1"]
# Changes that hide or alter what a rule has found, and what makes it visible again.
DISTURBANCES: list[Step] = [
    *(("agent", "n1", state) for state in ("silent", "answers")),
    *(("sources", variant) for lost in ("pods lost", "nodes lost", "no Kubernetes") for variant in (lost, "seen")),
    *(("pod", "p2", state) for state in ("runs on n1", "runs on n2", "waits", "is gone")),
    *(("event", name, variant) for name in ("p0", "p1") for variant in ("not mounted", "refused")),
    *(("node", "n1", state) for state in ("not ready", "short of disk", "well")),
    *(("services", variant) for variant in ("registry down", "none")),
    *(("part", "n1", part, variant) for part in ("disk", "gpu", "mounts") for variant in ("unknown", *N1[part])),
    *(("part", "n1", part, next(reversed(variants))) for part, variants in N1.items()),
    *(("agent", name, "gone") for name in NODES),
    ("node", "n1", "gone"),
]  # fmt: skip


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.rule)
def test_what_each_rule_finds_follows_each_change(rule: Rule) -> None:
    recipe = RECIPES[rule.rule]
    found = compare([*recipe, *([step, ("wait", 1.0)] for step in DISTURBANCES)], (rule,))
    assert rule.rule in found[len(recipe) - 1], "nothing was found that could change"
