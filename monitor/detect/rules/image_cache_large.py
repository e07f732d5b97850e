"""image-cache-large: images use more of a disk than allowed; with what can be removed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from monitor.detect.base import ANY_CAUSE, Bytes, Latency, Ratio, Rule, RuleContext, RuleResult, SubjectKind
from monitor.detect.findings import make_finding
from monitor.detect.labels import label_value
from monitor.detect.lib.disk_contents import image_evidence, is_on_disk
from monitor.detect.subjects import NodeReport, NodeSubject
from monitor.facts.findings import Finding, Scope
from monitor.facts.storage import DiskFact, ImageCacheFact, ImageFact
from monitor.facts.text import Value

CAUSES = ("growth", "unused-images", "build-cache")
_MAIN_PART_RATIO = 1 / 3  # of the cache: a part this large is the cause
_MAX_NAMED_IMAGES = 3


@dataclass(frozen=True)
class Limits:
    """Share of its disk that the cache may use, and its largest size (0: unlimited)."""

    share: Ratio = 0.5
    size: Bytes = 0


@dataclass(frozen=True)
class _ImageCache:
    """Images and build cache on one disk."""

    images: tuple[ImageFact, ...]
    image_bytes: int
    build_bytes: int

    @property
    def total(self) -> int:
        return self.image_bytes + self.build_bytes

    @property
    def unused(self) -> tuple[ImageFact, ...]:
        return tuple(image for image in self.images if not image.containers and not image.pinned)

    @property
    def unused_bytes(self) -> int:
        """Bytes freed by removing unused images. Shared layers count repeatedly, hence the upper bound."""
        sizes = (image.size_bytes if image.unique_bytes is None else image.unique_bytes for image in self.unused)
        return min(self.image_bytes, sum(size or 0 for size in sizes))


def evaluate(node: NodeSubject, context: RuleContext, _memory: Any, _now: float) -> RuleResult:
    """Image caches of a node that are too large."""
    report, findings, blind = node.report, [], []
    for fact in report.snapshot.disk or ():
        caches = _caches_on(fact, report)
        if not caches:
            continue
        labels = {"node": label_value(node.name), "mount": label_value(fact.mount)}
        if fact.size_bytes is None or any(cache.total_bytes is None for cache in caches):
            blind.append(Scope(labels=labels))
            continue
        cache = _cache(report, caches)
        limits: Limits = context.limits.of(labels)
        if cache.total > limits.share * fact.size_bytes or 0 < limits.size < cache.total:
            findings.append(_finding(context, report, fact, cache, labels))
    return RuleResult(tuple(findings), blind=tuple(blind))


def _caches_on(fact: DiskFact, report: NodeReport) -> list[ImageCacheFact]:
    """Caches on a disk. Only one that serves a runtime can have the only cache."""
    caches = report.snapshot.images or ()
    if len(caches) == 1 and "runtime" not in fact.roles:
        return []
    return [cache for cache in caches if is_on_disk(report, cache.root, fact)]


def _cache(report: NodeReport, caches: list[ImageCacheFact]) -> _ImageCache:
    runtimes, usages = {cache.runtime for cache in caches}, report.snapshot.runtime_usage or ()
    build = sum(usage.build_cache_bytes or 0 for usage in usages if usage.runtime in runtimes)
    images = tuple(image for cache in caches for image in cache.images)
    return _ImageCache(images, sum(cache.total_bytes or 0 for cache in caches), build)


def _cause(cache: _ImageCache) -> str:
    """What is easiest to remove: build cache, then unused images."""
    if cache.build_bytes >= _MAIN_PART_RATIO * cache.total:
        return "build-cache"
    return "unused-images" if cache.unused_bytes >= _MAIN_PART_RATIO * cache.total else "growth"


def _finding(
    context: RuleContext, report: NodeReport, fact: DiskFact, cache: _ImageCache, labels: dict[str, str]
) -> Finding:
    cause = _cause(cache)
    images = cache.unused if cause == "unused-images" else cache.images
    largest = sorted(images, key=lambda image: (-(image.size_bytes or 0), image.id))[:_MAX_NAMED_IMAGES]
    values: dict[str, Value] = {"node": report.node, "mount": fact.mount, "bytes": cache.total}
    values |= {"share": cache.total / fact.size_bytes if fact.size_bytes else 1.0}
    values |= {"unused": cache.unused_bytes, "build": cache.build_bytes}
    evidence = (image_evidence(image, report, context.facts) for image in largest if image.size_bytes)
    return make_finding(
        "image-cache-large", cause, labels, values, evidence=evidence, advice_values={"node": report.node}
    )


LATENCY = {"build-cache": Latency(collector="runtime_usage"), ANY_CAUSE: Latency(collector="images")}
RULE = Rule(
    "image-cache-large", Limits, CAUSES, evaluate, SubjectKind.NODE,
    needs=("images", "disk"), uses=("runtime_usage", "containers", "pods"),
    suppressed_by=("disk-full",), latency=LATENCY,
)  # fmt: skip
