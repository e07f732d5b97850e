"""What a detector is given, what it returns, and what its limits are made of."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import wraps
from typing import Annotated, Any, Generic, TypeVar, cast

from monitor.facts.cluster_facts import ClusterFacts
from monitor.facts.findings import Finding, Scope
from monitor.facts.services import ServiceFact

# How a limit is written in the configuration: 10m, 80%, 50GiB. The configuration reads these marks.
Seconds = Annotated[float, "duration"]
Share = Annotated[float, "ratio"]
Bytes = Annotated[int, "size"]

L = TypeVar("L")
T = TypeVar("T")


@dataclass(frozen=True)
class Override(Generic[L]):
    """Other limits for subjects whose labels match, by shell patterns: {"mount": "/scratch*"}."""

    match: Mapping[str, str]
    limits: L


@dataclass(frozen=True)
class Limits(Generic[L]):
    """A rule's limits, and the exceptions. A rule that is off finds nothing."""

    default: L
    overrides: tuple[Override[L], ...] = ()
    enabled: bool = True

    def of(self, labels: Mapping[str, str]) -> L:
        """Return the limits for a subject: those of the first exception that matches, else the default."""
        for override in self.overrides:
            if all(fnmatchcase(labels.get(name, ""), pattern) for name, pattern in override.match.items()):
                return override.limits
        return self.default


@dataclass(frozen=True)
class OwnDeletion:
    """What this product deleted itself on a node: below `path`, or, without one, from the runtime's cache of images.

    `ended_at` is None while it goes on; then `bytes` is what it will have freed in the end.
    """

    node: str
    path: str | None
    bytes: int
    began_at: float
    ended_at: float | None = None


@dataclass(frozen=True)
class Situation:
    """Everything a detector may look at. `limits` are those of its own rule."""

    world: ClusterFacts
    now: float
    services: tuple[ServiceFact, ...] = ()
    own_deletions: tuple[OwnDeletion, ...] = ()
    limits: Limits[Any] = field(default_factory=lambda: Limits(None))
    shared: dict[Any, Any] = field(default_factory=dict, init=False, compare=False, repr=False)  # see `once`


def once(work: Callable[[Situation], T]) -> Callable[[Situation], T]:
    """Have what several rules need worked out by the first that asks. It must not depend on limits, nor be changed."""

    @wraps(work)
    def known(situation: Situation) -> T:
        if work not in situation.shared:
            situation.shared[work] = work(situation)
        return cast("T", situation.shared[work])

    return known


@dataclass(frozen=True)
class Detected:
    """What a detector returns: findings, what it wants to remember, and of what it could not know.

    `memory` is anything that JSON can hold; it is given back next time, also after a restart. Findings of this rule
    that one of `blind` covers are held as they were: that there are no facts is no sign that all is well.
    """

    findings: tuple[Finding, ...] = ()
    memory: Any = None
    blind: tuple[Scope, ...] = ()


@dataclass(frozen=True)
class Rule:
    """A detector: the rule's name, its limits (a frozen dataclass of the defaults), its causes, and the decision.

    Given the situation and what was remembered, `detect` returns what was detected; odd facts never make it raise.
    One that is `prompt` costs little, and what it finds is said at once by Kubernetes or a probe: in a large cluster
    it is asked between two looks of all rules too.
    """

    rule: str
    limits: type[Any]
    causes: tuple[str, ...]
    detect: Callable[[Situation, Any], Detected]
    prompt: bool = False

    def __call__(self, situation: Situation, memory: Any) -> Detected:
        return self.detect(situation, memory)


def with_limits(situation: Situation, limits: Limits[Any]) -> Situation:
    """Return the situation as one rule sees it. What rules have worked out together they all see."""
    own = replace(situation, limits=limits)
    object.__setattr__(own, "shared", situation.shared)
    return own
