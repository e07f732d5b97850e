"""Disks, images and nodes in one line each, and a way to evaluate a rule repeatedly."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
from msgspec import structs

from monitor.detect.base import Limits, Rule, RuleContext
from monitor.detect.engine import Engine, detect
from monitor.detect.history import DetectionHistory
from monitor.facts.agents import AgentFact
from monitor.facts.facts_index import make_cluster_facts
from monitor.facts.findings import LABELS, Finding
from monitor.facts.node import CollectorFact, NodeSnapshot
from monitor.facts.storage import DiskFact, ImageCacheFact, ImageFact, RuntimeUsageFact
from monitor.facts.text import Text
from monitor.facts.workload import ContainerFact, LogFact
from monitor.i18n import LANGUAGES, say

NOW = 1_763_260_000.0
GIB = 1024**3
MIB = 1024**2
TIB = 1024**4


def disk(mount: str = "/", used: float = 50, size: float = 100, **more: Any) -> DiskFact:
    """A disk, in GiB."""
    fields: dict[str, Any] = {
        "device": "/dev/sda1",
        "fstype": "ext4",
        "roles": ("system",) if mount == "/" else ("data",),
        "size_bytes": round(size * GIB),
        "used_bytes": round(used * GIB),
        "available_bytes": round((size - used) * GIB),
        "read_only": False,
    }
    return DiskFact(mount=mount, **(fields | more))


def nas(
    used: float = 50, size: float = 100, *, mount: str = "/nas", device: str = "nas:/export", **more: Any
) -> DiskFact:
    return disk(mount, used, size, **({"device": device, "fstype": "nfs4", "roles": ("nas",)} | more))


def hung(mount: str = "/data", **more: Any) -> DiskFact:
    """A disk that does not respond."""
    fields: dict[str, Any] = {"device": "/dev/sdb1", "fstype": "ext4", "roles": ("data",), "hung_since": NOW - 99}
    return DiskFact(mount=mount, **(fields | more))


def hung_nas() -> DiskFact:
    """The NAS of `nas` when it does not respond."""
    return hung("/nas", device="nas:/export", fstype="nfs4", roles=("nas",))


def agent(node: str = "n1", *disks: DiskFact, at: float = NOW, skew: float = 0.0, **parts: Any) -> AgentFact:
    """An agent that responds."""
    given: dict[str, Any] = {"disk": disks} if disks else {}
    snapshot = NodeSnapshot(node=node, at=at - skew, agent_version="0", **(given | parts))
    return AgentFact(target=f"{node}:9835", node=node, snapshot=snapshot, received_at=at)


def repeated(fact: AgentFact, at: float) -> AgentFact:
    """The same report of an agent at a later time."""
    assert fact.snapshot is not None
    return structs.replace(fact, received_at=at, snapshot=structs.replace(fact.snapshot, at=at))


def silent(node: str = "n1") -> AgentFact:
    return AgentFact(target=f"{node}:9835", node=node, silent_since=NOW - 300, error="refused")


def absent(collector: str) -> CollectorFact:
    return CollectorFact(name=collector, outcome="absent", interval_seconds=60)


def container(
    name: str = "train", *, pod: str | None = "bert-0", user: str | None = "alice", **more: Any
) -> ContainerFact:
    fields: dict[str, Any] = {
        "id": f"id-{name}",
        "runtime": "docker",
        "state": "running",
        "name": name,
        "pod_uid": f"uid-{pod}" if pod else None,
        "pod_name": pod,
        "namespace": "team" if pod else None,
        "user": user,
        "log_path": f"/var/lib/docker/containers/{name}/{name}-json.log",
    }
    return ContainerFact(**(fields | more))


def cache(
    *images: ImageFact, total: float = 0, root: str = "/var/lib/docker", runtime: str = "docker"
) -> ImageCacheFact:
    return ImageCacheFact(runtime=runtime, images=images, root=root, total_bytes=round(total * GIB))


def image(name: str = "harbor/nlp/bert:1", size: float = 10, *used_by: str, **more: Any) -> ImageFact:
    fields: dict[str, Any] = {"id": f"sha256:{name}", "names": (name,), "containers": tuple(f"id-{c}" for c in used_by)}
    return ImageFact(size_bytes=round(size * GIB), **(fields | more))


def usage(writable: Mapping[str, float] | None = None, **more: Any) -> RuntimeUsageFact:
    sizes = {f"id-{name}": round(size * GIB) for name, size in (writable or {}).items()}
    fields: dict[str, Any] = {"runtime": "docker", "writable": sizes, "writable_bytes": sum(sizes.values())}
    return RuntimeUsageFact(**(fields | more))


def log(name: str, size: float) -> LogFact:
    return LogFact(container_id=f"id-{name}", size_bytes=round(size * GIB))


class Watch:
    """A rule under the real engine, evaluated repeatedly."""

    def __init__(self, rule: Rule, **limits: Any) -> None:
        self._rule = rule
        self._limits = Limits(rule.limits(**limits))
        self.history = DetectionHistory()

    def see(self, *agents: AgentFact, now: float = NOW, **world: Any) -> list[Finding]:
        """Findings; the memory makes a round trip through JSON, as when it is saved."""
        context = RuleContext(make_cluster_facts(agents=agents, **world), now)
        found = detect((self._rule,), {self._rule.rule: self._limits}, context, self.history)
        self.history = thawed(found.history)
        for finding in found.findings:
            assert_well_made(finding, self._rule)
        return list(found.findings)

    @property
    def memory(self) -> dict[str, Any]:
        """What is remembered by subject: "unit" or "unit key"."""
        units = self.history.units.get(self._rule.rule, {})
        return {f"{u} {key}".rstrip(): s.memory for u, unit in units.items() for key, s in unit.subjects.items()}


class Continuous:
    """A rule under one engine, which evaluates only what has changed or is due."""

    def __init__(self, rule: Rule, **limits: Any) -> None:
        self._engine = Engine((rule,), {rule.rule: Limits(rule.limits(**limits))})

    @property
    def next_at(self) -> float | None:
        return self._engine.next_at

    def see(self, *agents: AgentFact, now: float = NOW, **world: Any) -> list[Finding]:
        return list(self._engine.evaluate(RuleContext(make_cluster_facts(agents=agents, **world), now)))


def thawed(history: DetectionHistory) -> DetectionHistory:
    return msgspec.json.decode(msgspec.json.encode(history), type=DetectionHistory)


def once(rule: Rule, *agents: AgentFact, **world: Any) -> list[Finding]:
    """Findings of a rule without memory."""
    return Watch(rule).see(*agents, **world)


def assert_well_made(finding: Finding, rule: Rule) -> None:
    """Every finding has a declared cause, bounded labels, and texts in every language."""
    assert finding.cause in (rule.causes or (rule.rule,)), finding.cause
    assert set(finding.labels) <= set(LABELS)
    assert all(0 < len(value) <= 253 for value in finding.labels.values())
    assert finding.advice
    for lang in LANGUAGES:
        for line in lines(finding, lang):
            assert line.strip()
            assert line.isprintable()


def lines(finding: Finding, lang: str = "en") -> list[str]:
    return [spoken(note, lang) for note in (finding.headline, *finding.evidence, *finding.advice)]


def spoken(note: Text, lang: str = "en") -> str:
    return say(lang, note.key, note.values)


def text(finding: Finding, lang: str = "en") -> str:
    return "\n".join(lines(finding, lang))


def brief(findings: Iterable[Finding]) -> list[tuple[str, str, bool]]:
    """Severity, cause and whether it is held, as most tables compare them."""
    return [(finding.severity.value, finding.cause, finding.held) for finding in findings]
