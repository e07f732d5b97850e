"""image-oversize: an image is so large that it fills disks and is slow to start; with its users."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from monitor.detect.base import NOTHING, Bytes, Latency, Rule, RuleContext, RuleResult, SubjectKind
from monitor.detect.findings import make_finding
from monitor.detect.labels import label_value
from monitor.detect.lib.disk_contents import image_name, image_users, join_names
from monitor.detect.subjects import ImageCopies
from monitor.facts.findings import Finding
from monitor.facts.text import Text, Value

NAME = "image-oversize"
GIB = 1024**3


@dataclass(frozen=True)
class Limits:
    """Largest size of an image."""

    size: Bytes = 30 * GIB


def evaluate(image: ImageCopies, context: RuleContext, _memory: Any, _now: float) -> RuleResult:
    """An oversized image, once for all nodes. Of several names the first tag counts."""
    limits = context.limits
    if image.size_bytes <= min([limits.default.size, *(override.limits.size for override in limits.overrides)]):
        return NOTHING  # most images, whose names need not be determined
    named = min((copy for _, copy in image.copies), key=lambda copy: (not copy.names, image_name(copy)), default=None)
    if named is None or image.size_bytes <= limits.of({"image": label_value(image_name(named))}).size:
        return NOTHING
    return RuleResult((_finding(image, image_name(named), context),))


def _finding(image: ImageCopies, name: str, context: RuleContext) -> Finding:
    users = sorted({user for report, copy in image.copies for user in image_users(copy, report, context.facts)})
    nodes = sorted({report.node for report, _ in image.copies})
    starts = (copy.first_seen_at + report.skew for report, copy in image.copies if copy.first_seen_at is not None)
    used = Text("image-oversize.used", {"users": join_names(users)}) if users else Text("image-oversize.unused")
    values: dict[str, Value] = {"image": name, "bytes": image.size_bytes, "count": len(nodes)}
    return make_finding(
        NAME, NAME, {"image": label_value(name)}, values | {"nodes": join_names(nodes)}, evidence=(used,),
        advice_values={"image": name}, since=min(starts, default=None),
    )  # fmt: skip


RULE = Rule(
    NAME, Limits, (), evaluate, SubjectKind.IMAGE, needs=("images",), refines=("containers", "pods"),
    latency=Latency(collector="images"),
)  # fmt: skip
