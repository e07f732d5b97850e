"""Why schedulers and queue controllers do not place a pod, according to their messages.

kube-scheduler, Volcano, Kueue, YuniKorn, HAMi, Koordinator, Coscheduling and dynamic resource allocation. A message
lists reasons with the number of nodes. Nodes that the pod does not select do not matter if it selects others.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from monitor.explain.error_chain import scheduling_phrases as phrases
from monitor.explain.error_chain.causes import SchedulingCause as C
from monitor.explain.error_chain.parse import MAX_CHARS
from monitor.explain.error_chain.wording import find, says
from monitor.facts.gpu_resources import Family, Part, resource_kind

_PREEMPTION = re.compile(r"(?:no new claims to deallocate, |still not schedulable, )?preemption: ", re.IGNORECASE)
_MEMBER_REASON = ' with reason "'  # why another pod of the gang does not fit
_NODES = re.compile(
    r"(?:(?<!\d)\d{1,9}/(\d{1,9})|\ball) (?:nodes|reservations) are (?:un)?available[:,]?\s*", re.IGNORECASE
)
_PART = re.compile(r"(?:^|[,.;]\s+)(\d+)\s+(?=\S)")
# Before Kubernetes 1.11: `No nodes are available that match all of the predicates: Insufficient cpu (3).`
_PREDICATES = re.compile(r"(?:match all of the (?:following )?predicates|fit failure summary on nodes) ?:+ ?")
_PREDICATE = re.compile(r"([^,()]{1,200}) \((\d{1,9})\)")
# A resource is one word: plugins say "Insufficient" of other things too.
_RESOURCE = re.compile(
    r"insufficient ([\w.-]+/[\w.-]+|cpu|memory|ephemeral-storage|pods|storage|gpu|"
    r"(?:hugepages|attachable-volumes)-[\w.-]+)$",
    re.IGNORECASE,
)
# The plugin is who speaks, not what it says.
_RUNNING_PLUGIN = re.compile(r"^running (?:\w+ plugin \"\w+\": |\"\w+\" filter plugin for pod \"[^\"]{1,300}\": )")
# KAI: `2 node(s) didn't have enough resources: GPUs`
_KAI_SHORTAGE = re.compile(r"have enough resources?: (gpus?|cpu(?: cores)?|memory)\b")
_TAINT = re.compile(r"taints?(?:\(s\))?[^{(]{0,60}[{(]([\w./-]+)")
_GANG_STATUS = re.compile(r"(?<!\d)(\d{1,9}) (Pending|Running|Succeeded|Bound|Binding|Allocated|Pipelined|Releasing)\b")
_MIN_AVAILABLE = re.compile(r"(?<!\d)(\d{1,9}) minAvailable")
_GANG_TASKS = re.compile(r"(?<!\d)(\d{1,9})/(\d{1,9}) tasks in gang unschedulable")
_SHARES = {Part.MEMORY: C.VGPU_MEMORY, Part.CORES: C.VGPU_CORES}
_CONTROL_PLANE = ("node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master")
MAX_PARTS = 64


@dataclass(frozen=True, slots=True)
class SchedulingPart:
    """One reason of the message, the nodes that it applies to if given, and the resource or taint that it names."""

    cause: C
    text: str
    nodes: int | None = None
    name: str | None = None
    everywhere: bool = False  # on all nodes: no other reason would place the pod


def parse_scheduling(message: str | None) -> tuple[SchedulingPart, ...]:
    """Reasons of a message, without the result of preemption, which is about other pods."""
    text = (message or "")[:MAX_CHARS]
    if "preemption: " in text.lower():
        text = _PREEMPTION.split(text, maxsplit=1)[0]
    text = text.strip().partition(_MEMBER_REASON)[0]
    *_, total, reasons = (None, *_NODES.split(text))  # Volcano quotes the scheduler's message within its own
    if reasons == text:
        return _predicates(text) or _whole(text)
    pieces = _PART.split(reasons.rstrip(" ."))
    parts = [_part(pieces[0], None)] if pieces[0].strip(" .,") else []
    for count, piece in zip(pieces[1::2], pieces[2::2], strict=True):
        parts.append(_part(piece, int(count[:9]), everywhere=count == total))
    return tuple(parts[:MAX_PARTS])


def main_reason(parts: tuple[SchedulingPart, ...]) -> SchedulingPart | None:
    """The reason to act on: constraints of the pod first, then what stops it on the most nodes that it may use."""
    most = max((part.nodes or 0 for part in parts), default=0)
    relevant = [part for part in parts if not _is_irrelevant(part, most)] or list(parts)
    if not relevant:
        return None
    wants_gpus = any(part.cause is C.GPUS for part in parts)
    return min(relevant, key=lambda part: (_rank(part, wants_gpus), -(part.nodes or 0), not _is_gpu_shortage(part)))


def _is_irrelevant(part: SchedulingPart, most: int) -> bool:
    """Nodes that the pod is not meant for: not selected, of the control plane, or a few with a taint not named."""
    if part.everywhere:
        return False
    if part.cause is C.TAINT:
        return part.name in _CONTROL_PLANE or (part.name is None and (part.nodes or 0) < most)
    return part.cause in (C.SELECTOR, C.OTHER)


def _rank(part: SchedulingPart, wants_gpus: bool) -> int:
    if part.cause in phrases.DECISIVE:
        return 0
    # Nodes with GPUs are tainted with the name of the resource or as such; the others have none to offer.
    keeps_gpus = wants_gpus and part.cause is C.TAINT and "gpu" in part.text.lower()
    excludes = part.everywhere and part.cause in (C.SELECTOR, C.TAINT)
    return 1 if part.cause in phrases.CONSTRAINTS or keeps_gpus or excludes else 2


def _is_gpu_shortage(part: SchedulingPart) -> bool:
    return part.cause in (C.GPUS, C.DISK_PRESSURE, C.NOT_READY, C.MEMORY_PRESSURE)


def _predicates(text: str) -> tuple[SchedulingPart, ...]:
    """Failed predicates, each with the number of nodes behind it."""
    match = _PREDICATES.search(text)
    pieces = _PREDICATE.findall(text, match.end())[:MAX_PARTS] if match else ()
    return tuple(_part(piece, int(count)) for piece, count in pieces)


def _whole(text: str) -> tuple[SchedulingPart, ...]:
    """A message that does not count nodes: of a plugin, a queue controller or a gang."""
    if not text:
        return ()
    if gang := _gang(text):
        return (SchedulingPart(gang, text),)
    if "nodes" in text and (pieces := re.split(r"(?:^|, )(\d+) nodes (?:failed: )?", text))[1:]:  # HAMi
        return tuple(_part(piece, int(count[:9])) for count, piece in zip(pieces[1::2], pieces[2::2], strict=True))
    return (_part(text, None),)


def _gang(text: str) -> C | None:
    """Volcano's summary of a gang: incomplete if fewer pods exist than it needs."""
    if "minAvailable" not in text or (needed := _MIN_AVAILABLE.search(text)) is None:
        return None
    tasks = _GANG_TASKS.search(text)
    status = text.partition(";")[0]
    present = sum(int(count) for count, _ in _GANG_STATUS.findall(status))
    if not present and tasks is not None:
        present = int(tasks[2])
    return C.GANG_WAITING if present >= int(needed[1]) else C.GANG_INCOMPLETE


def _part(text: str, nodes: int | None, *, everywhere: bool = False) -> SchedulingPart:
    text = text.strip().rstrip(",.\"'")
    low = _RUNNING_PLUGIN.sub("", text.lower())
    cause = _of_sentence(low)
    if cause is not None:
        return SchedulingPart(cause, text, nodes, everywhere=everywhere)
    if "taint" in low:
        match = _TAINT.search(text)
        name = match[1].rstrip(":") if match else None
        return SchedulingPart(_of_taint(name or ""), text, nodes, name, everywhere)
    if "insufficient" in low and (match := _RESOURCE.search(text)):
        return SchedulingPart(_of_resource(match[1]), text, nodes, match[1], everywhere)
    return SchedulingPart(C.OTHER, text, nodes)


def _of_sentence(low: str) -> C | None:
    if "enough resource" in low and (match := _KAI_SHORTAGE.search(low)):
        return phrases.KAI_RESOURCES.get(match[1])
    if "queue" in low and says(low, phrases.NO_SUCH_QUEUE):
        return C.QUEUE_MISSING
    if "resourceclaim" in low and ("not found" in low or "not find" in low):
        return C.DEVICE_CLAIM_MISSING
    if low == "do not meet":  # HAMi, after the number of nodes
        return C.VGPU_UNFIT
    if "device class" in low:
        return C.DEVICE_CLASS_MISSING if says(low, ("does not exist", "not found")) else C.DEVICE_CLAIM
    cause = find(low, phrases.SENTENCES) or _of_gang(low)
    if cause is C.QUEUE_CLOSED and not says(low, ("queue", "stoppolicy")):
        return None  # other objects are closed, stopped or inactive too
    if cause is C.GANG_WAITING and says(low, ("not found", "failed to get", "cannot find", "can't find")):
        return None  # the group does not exist or cannot be read: nothing waits for its pods
    if cause is C.QUEUE_FULL and "maximum capacity" in low and "more needed" not in low:
        return C.QUEUE_TOO_SMALL
    if cause is C.CLAIM_MISSING and "not found" not in low:
        return C.CLAIM_UNBOUND
    return cause


def _of_gang(low: str) -> C | None:
    """A gang that waits: the name of a gang or plugin alone does not tell whether its pods exist."""
    return C.GANG_WAITING if says(low, phrases.GANG) and says(low, phrases.GANG_WAITS) else None


def _of_taint(key: str) -> C:
    """Kubernetes sets taints for conditions of a node: the condition needs fixing, not a toleration."""
    return find(key.lower(), phrases.CONDITION_TAINTS) or C.TAINT


def _of_resource(name: str) -> C:
    known = {"cpu": C.CPU, "memory": C.MEMORY, "ephemeral-storage": C.EPHEMERAL_STORAGE, "pods": C.PODS, "gpu": C.GPUS}
    kind = resource_kind(name)
    if kind is None:
        return known.get(name.lower(), C.RESOURCE)
    if kind.per_card:
        # HAMi's own scheduler does not say this: kube-scheduler does not know that HAMi offers the resource.
        return C.OTHER if kind.family is Family.HAMI else _SHARES.get(kind.part, C.VGPU_UNFIT)
    return C.GPUS if kind.countable else C.RESOURCE
