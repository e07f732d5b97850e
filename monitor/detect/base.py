"""The interface of a rule: its metadata, the context it evaluates, and its result."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Annotated, Any, Final, Generic, TypeVar

from monitor.base.globs import matches_glob
from monitor.base.units import format_duration
from monitor.facts.cluster_facts import ClusterFacts
from monitor.facts.findings import Finding, Scope
from monitor.facts.prices import GpuPrices
from monitor.facts.services import ServiceFact

# Units of limits in the configuration: 10m, 80%, 50GiB. monitor.config.rules maps them to settings.
Seconds = Annotated[float, "duration"]
Ratio = Annotated[float, "ratio"]
Bytes = Annotated[int, "size"]
TimeZone = Annotated[str, "zone"]


@dataclass(frozen=True)
class Threshold:
    """A number of events within a time, written `3 in 1h`."""

    count: int
    window: float

    def __str__(self) -> str:
        return f"{self.count} in {format_duration(self.window)}"

    def met_until(self, events: Sequence[tuple[float, int]]) -> float:
        """When fewer events than the threshold are within its window; `events` are times and numbers, oldest first."""
        total = 0
        for at, number in reversed(events):
            total += number
            if total >= self.count:
                return at + self.window
        return -math.inf


ThresholdLimit = Annotated[Threshold, "threshold"]
ANY_CAUSE = "*"
AGE: Final = "seconds"  # the age of a finding with a start, which the engine adds to its headline and keeps current
COST: Final = "cost"  # what has been spent until now, which the engine keeps current where HOURLY_COST is given
HOURLY_COST: Final = "hourly_cost"
UNSPENT_COST: Final = "unspent_cost"  # what the cost is short of that of all hours since the start
CURRENCY: Final = "currency"
MAX_RAW_CHARS = 1000  # of the raw message in a finding

L = TypeVar("L")
T = TypeVar("T")


@dataclass(frozen=True)
class Override(Generic[L]):
    """Limits for subjects whose labels match shell patterns: {"mount": "/scratch*"}."""

    match: Mapping[str, str]
    limits: L


@dataclass(frozen=True)
class Limits(Generic[L]):
    """Configured limits of a rule. A disabled rule finds nothing."""

    default: L
    overrides: tuple[Override[L], ...] = ()
    enabled: bool = True

    def of(self, labels: Mapping[str, str]) -> L:
        """Limits for a subject: those of the first matching override, else the default."""
        for override in self.overrides:
            if all(matches_glob(labels.get(name, ""), pattern) for name, pattern in override.match.items()):
                return override.limits
        return self.default


@dataclass(frozen=True)
class CleanupDeletion:
    """Data that cleanup deleted on a node: below `path`, or from the runtime's image cache if `path` is None.

    While the deletion is in progress `ended_at` is None and `bytes` is the expected total.
    """

    node: str
    path: str | None
    bytes: int
    began_at: float
    ended_at: float | None = None


@dataclass(frozen=True)
class RuleContext:
    """Input of one rule. `limits` and `symptoms` (names of the rules that it suppresses) are those of that rule."""

    facts: ClusterFacts
    now: float
    services: tuple[ServiceFact, ...] = ()
    own_deletions: tuple[CleanupDeletion, ...] = ()
    prices: GpuPrices | None = None
    limits: Limits[Any] = field(default_factory=lambda: Limits(None))
    symptoms: tuple[str, ...] = ()


@dataclass(frozen=True)
class RuleResult:
    """What a rule finds about one subject: usually nothing or one finding.

    `memory` is any JSON value that the next evaluation of the subject gets back, also after a restart. `next_at` is
    when time alone may change the result; without it the subject is evaluated again only when its facts change.
    `unknown`: the facts do not suffice, so that the last result is held; missing facts are not evidence of recovery. A
    rule about the whole cluster names what it cannot judge as scopes in `blind`.
    """

    findings: tuple[Finding, ...] = ()
    memory: Any = None
    blind: tuple[Scope, ...] = ()
    next_at: float | None = None
    unknown: bool = False


NOTHING = RuleResult()
UNKNOWN = RuleResult(unknown=True)


def since(memory: Any, condition: str, now: float, known: float | None = None) -> float:
    """Start of a condition: the earliest known or remembered, never in the future after the clock was set back."""
    remembered = memory.get("since") if isinstance(memory, dict) and memory.get("condition") == condition else None
    times = [at for at in (remembered, known) if isinstance(at, int | float)]
    return min((*times, now))


def lasting(
    condition: str,
    limit: float,
    memory: Any,
    now: float,
    finding: Callable[[float], Finding],
    known: float | None = None,
) -> RuleResult:
    """The finding about a condition once it has lasted for `limit` seconds; `finding` gets its start.

    A different condition starts anew. `known` is the start, if the facts contain it.
    """
    began = since(memory, condition, now, known)
    remembered = {"condition": condition, "since": began}
    if now - began < limit:
        return RuleResult(memory=remembered, next_at=began + limit)
    return RuleResult((finding(began),), remembered)


class Delay(Enum):
    """Why reporting or resolving takes longer than the limits of a rule."""

    FIRST_SEEN = "the limit counts from the evaluation that first sees the condition"
    POD_GONE = "agent reports count once they are repeated after the pod is gone"
    GRACE_PERIOD = "the grace period of the deletion"
    FAILED_RUN = "the limit counts from the first failed run"
    SERVICE_PROBE = "services are probed at intervals"
    AGENT_BACKOFF = "a silent agent is polled less often"


@dataclass(frozen=True)
class Latency:
    """How soon a cause is reported and resolved; the scorecard enforces it.

    `limit` and `resolve_limit` name the limit that has to elapse, or are seconds. `collector` is the collector that
    provides the facts: its interval adds to both.
    """

    limit: str | float = 0.0
    delay: Delay | None = None
    resolve_limit: str | float = 0.0
    resolve_delay: Delay | None = None
    collector: str | None = None


@dataclass(frozen=True)
class NoLimits:
    """Limits of a rule that has none."""


@dataclass(frozen=True)
class RuleMetadata:
    """What configuration, documentation, Prometheus rules and scorecard derive from a rule.

    Attributes:
        rule: the name, such as gpu-hot. Its texts are in monitor/i18n/<language>/findings_*.py.
        limits: a frozen dataclass; each field is a setting below daemon.rules, with its default.
        causes: the causes of its findings; empty if the rule has only one.
        suppressed_by: rules whose findings explain those of this rule. node-down explains all findings on its node;
            any other rule listed here has to create the scopes itself.
        advice: catalogue keys of the advice for a cause; by default `<rule>.<cause>.advice` or `<rule>.advice`.
        latency: of all causes, or by cause or ANY_CAUSE; by default the limit `after`, counted from the first
            evaluation that sees it.
        prometheus_alert: whether alerts/findings.rules.yml has an alert for it.

    """

    rule: str
    limits: type[Any]
    causes: tuple[str, ...]
    _: dataclasses.KW_ONLY
    suppressed_by: tuple[str, ...] = ()
    advice: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    latency: Latency | Mapping[str, Latency] = field(default_factory=dict)
    prometheus_alert: bool = True

    @property
    def latencies(self) -> Mapping[str, Latency]:
        """Declared latencies by cause, or ANY_CAUSE."""
        return {ANY_CAUSE: self.latency} if isinstance(self.latency, Latency) else self.latency

    def latency_of(self, cause: str) -> Latency:
        """Latency of a cause."""
        default = Latency("after", Delay.FIRST_SEEN) if hasattr(self.limits, "after") else Latency()
        return self.latencies.get(cause) or self.latencies.get(ANY_CAUSE) or default


class SubjectKind(Enum):
    """What a rule evaluates one at a time. The value is the type of the subject, see `monitor.detect.subjects`."""

    GPU = "GpuSubject"
    NODE = "NodeSubject"
    MOUNT = "ClusterDisk"
    IMAGE = "ImageCopies"
    POD = "PodFact"
    JOB = "JobGpus"
    SERVICE = "ServiceFact"
    REGISTRY = "RegistryReachability"
    CLUSTER = "ClusterFacts"


Evaluate = Callable[[Any, RuleContext, Any, float], RuleResult]
Correlate = Callable[[Sequence[Finding], RuleContext], Sequence[Finding]]


@dataclass(frozen=True)
class Rule(RuleMetadata):
    """A rule that is evaluated for each subject in its scope when one of its facts changes.

    Attributes:
        evaluate: gets the subject, the context, the memory of the subject and the time. Malformed facts must not make
            it raise.
        scope: the kind of its subjects.
        needs: parts of a node's snapshot without which the result is unknown. `gpu` stands for the states of the GPUs:
            a rule that reads the driver's figures, which change with every poll, has it in `uses` or `refines` too.
        uses: further facts that it reads: parts of a node or, for the scopes POD and CLUSTER, kinds of facts.
        refines: further facts that only add detail to what it has found or remembers: a change of them evaluates only
            such subjects again.
        kube: Kubernetes resources without which the result is unknown.
        without_kubernetes: whether it is evaluated where Kubernetes is not connected, whatever `kube` says.
        correlate: turns the findings about single subjects into all findings of the rule, such as one about a server
            in addition to those about its clients.

    """

    evaluate: Evaluate
    scope: SubjectKind
    needs: tuple[str, ...] = ()
    uses: tuple[str, ...] = ()
    refines: tuple[str, ...] = ()
    kube: tuple[str, ...] = ()
    without_kubernetes: bool = False
    correlate: Correlate | None = None


def with_limits(context: RuleContext, limits: Limits[Any], symptoms: tuple[str, ...] = ()) -> RuleContext:
    """Context of one rule."""
    return replace(context, limits=limits, symptoms=symptoms)


def symptoms_of(rule: RuleMetadata, rules: Iterable[RuleMetadata]) -> tuple[str, ...]:
    """Sorted names of the rules that `rule` suppresses."""
    return tuple(sorted(other.rule for other in rules if rule.rule in other.suppressed_by))
