"""image-oversize: an image is so large that it fills disks and is slow to start; with its users."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import Any

from monitor.detect.base import ANY_CAUSE, Bytes, Latency, Rule, RuleContext, RuleResult, SubjectKind, whole_cluster
from monitor.detect.labels import label_value
from monitor.detect.lib.disk_contents import image_name, image_users, join_names
from monitor.detect.lib.storage import MAX_REMEMBERED_NODES, memory_sections, node_reports
from monitor.detect.subjects import NodeReport
from monitor.facts.findings import Finding, Scope, Severity
from monitor.facts.storage import ImageFact
from monitor.facts.text import Text, Value

CAUSES: tuple[str, ...] = ()
GIB = 1024**3


@dataclass(frozen=True)
class Limits:
    """Largest size of an image."""

    size: Bytes = 30 * GIB


def detect(context: RuleContext, memory: Any) -> RuleResult:
    """Oversized images, each once for all nodes. The memory holds the nodes that had it."""
    (previous,) = memory_sections(memory, "nodes")
    reports = node_reports(context)
    smallest = _smallest(context)
    images: defaultdict[str, list[tuple[NodeReport, ImageFact]]] = defaultdict(list)
    for report in reports.nodes.values():
        for cache in report.section("images") or ():
            for image in cache.images:
                if image.size_bytes is not None and image.size_bytes > smallest:
                    images[image.id].append((report, image))
    findings, nodes = [], {}
    for copies in images.values():
        finding = _finding(context, copies)
        if finding is not None:
            findings.append(finding)
            nodes[finding.labels["image"]] = [report.node for report, _ in copies[:MAX_REMEMBERED_NODES]]
    hidden = {image: at for image, at in previous.items() if image not in nodes and reports.any_hidden(at, "images")}
    blind = tuple(Scope(labels={"image": image}) for image in hidden)
    if not reports.nodes:
        blind = (Scope(labels={}),)
    return RuleResult(findings=tuple(findings), memory={"nodes": hidden | nodes}, blind=blind)


def _smallest(context: RuleContext) -> int:
    """Size below which no limit, including overrides, is exceeded."""
    limits = context.limits
    return int(min([limits.default.size, *(override.limits.size for override in limits.overrides)]))


def _finding(context: RuleContext, copies: list[tuple[NodeReport, ImageFact]]) -> Finding | None:
    """Finding about one image, or None. Of several names the first tag counts."""
    image = min((image for _, image in copies), key=lambda image: (not image.names, image_name(image)))
    name, size = image_name(image), max(image.size_bytes or 0 for _, image in copies)
    labels = {"image": label_value(name)}
    if size <= context.limits.of(labels).size:
        return None
    users = sorted({user for report, image in copies for user in image_users(image, report, context.facts)})
    nodes = sorted(report.node for report, _ in copies)
    used = Text(key="image-oversize.used", values={"users": join_names(users)})
    values: dict[str, Value] = {"image": name, "bytes": size, "count": len(nodes), "nodes": join_names(nodes)}
    return Finding(
        rule="image-oversize",
        severity=Severity.WARNING,
        cause="image-oversize",
        labels=labels,
        headline=Text(key="image-oversize", values=values),
        evidence=(used if users else Text(key="image-oversize.unused"),),
        advice=(Text(key="image-oversize.advice", values={"image": name}),),
        since=_first_seen(copies),
    )


def _first_seen(copies: list[tuple[NodeReport, ImageFact]]) -> float | None:
    return min((i.first_seen_at + report.skew for report, i in copies if i.first_seen_at is not None), default=None)


RULE = Rule(
    "image-oversize",
    Limits,
    CAUSES,
    whole_cluster(detect),
    SubjectKind.CLUSTER,
    latency={ANY_CAUSE: Latency(collector="images")},
)
