"""Plan of a user action: the steps it would take."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import msgspec

from monitor.cleanup.model import CleanupPlan, Item, PodWrite
from monitor.facts.actions import KillProcess
from monitor.facts.base import Fact
from monitor.facts.cluster import ClusterView, Identity, NodeView
from monitor.facts.kube import PodFact
from monitor.facts.text import Text, Value
from monitor.i18n import say
from monitor.i18n.notes import sentence

SYSTEM_NAMESPACES = ("kube-system", "kube-public", "kube-node-lease")
UNKNOWN_USER = "act.nobody"


class PodName(Fact, frozen=True, kw_only=True):
    """A pod. With a uid it never matches a later pod of the same name."""

    namespace: str
    name: str
    uid: str | None = None


class ReleaseGpu(Fact, frozen=True, kw_only=True):
    """Release a GPU, given by index or uuid, from holders that do not use it."""

    action: ClassVar[str] = "release-gpu"
    node: str
    gpu: str

    @property
    def target(self) -> str:
        return f"{self.node}/{self.gpu}"


class DeletePods(Fact, frozen=True, kw_only=True):
    """Delete pods."""

    action: ClassVar[str] = "delete-pods"
    pods: tuple[PodName, ...]

    @property
    def target(self) -> str:
        return " ".join(f"{pod.namespace}/{pod.name}" for pod in self.pods)


class Cordon(Fact, frozen=True, kw_only=True):
    """Cordon nodes."""

    action: ClassVar[str] = "cordon"
    nodes: tuple[str, ...]

    @property
    def target(self) -> str:
        return " ".join(self.nodes)


class Uncordon(Fact, frozen=True, kw_only=True):
    """Uncordon nodes."""

    action: ClassVar[str] = "uncordon"
    nodes: tuple[str, ...]

    @property
    def target(self) -> str:
        return " ".join(self.nodes)


UserAction = ReleaseGpu | DeletePods | Cordon | Uncordon


class UserActionStep(Fact, frozen=True, kw_only=True):
    """A planned or executed step. `kind` is kill, evict, delete, gone, cordon or uncordon.

    `key` identifies it, `text` describes it. After execution `state` is done, refused, later or failed; `outcome` is
    the result code, `message` the error of the executor, and `said` the sentence for the user.
    """

    key: str
    kind: str
    target: str
    text: str
    node: str | None = None
    owner: str | None = None
    gpus: int = 0
    warnings: tuple[str, ...] = ()
    state: str | None = None
    outcome: str | None = None
    message: str | None = None
    said: str | None = None


class UserActionOutcome(Fact, frozen=True, kw_only=True):
    """The plan (`dry_run`) or result of an action. `plan` is a digest of the steps; `ok` if all steps were done."""

    action: str
    dry_run: bool
    plan: str
    steps: tuple[UserActionStep, ...]
    ok: bool | None = None


@dataclass(frozen=True)
class PlannedStep:
    """A step whose texts are not rendered yet."""

    key: str
    kind: str
    target: str
    texts: tuple[Text, ...]
    node: str | None = None
    owner: str | None = None
    gpus: int = 0
    warnings: tuple[Text, ...] = ()
    pod: PodFact | None = None


@dataclass(frozen=True)
class UserActionPlan:
    """An action and its steps."""

    action: UserAction
    steps: tuple[PlannedStep, ...]

    @property
    def digest(self) -> str:
        """Digest of the action and its steps, independent of their order."""
        steps = sorted(f"{step.kind} {step.key}" for step in self.steps)
        lines = "\n".join((self.action.action, *steps))
        return hashlib.sha256(lines.encode("utf-8", "surrogatepass")).hexdigest()[:16]


@dataclass(frozen=True)
class UserActionContext:
    """The state of the cluster that a plan is based on."""

    view: ClusterView
    pods: tuple[PodFact, ...]
    identities: Mapping[str, Identity]

    @cached_property
    def pods_by_name(self) -> dict[tuple[str, str], PodFact]:
        """Pods by namespace and name."""
        return {(pod.namespace, pod.name): pod for pod in self.pods}

    @cached_property
    def nodes(self) -> dict[str, NodeView]:
        """Nodes by name."""
        return {node.name: node for node in self.view.nodes}

    @cached_property
    def gpu_counts(self) -> Counter[str]:
        """Number of GPUs that each pod holds, by pod uid."""
        return Counter(holder.pod_uid for gpu in self.view.gpus for holder in gpu.holders if holder.pod_uid)

    def owner(self, pod: PodFact) -> str | None:
        identity = self.identities.get(pod.uid)
        return identity.user if identity is not None else None


def plan_release(action: ReleaseGpu, plan: CleanupPlan, context: UserActionContext) -> UserActionPlan:
    """Steps of a GPU release. Raise ValueError, with a message for the user, if the cleanup plan is refused."""
    if plan.refused is not None:
        raise ValueError(sentence(plan.refused, "en"))
    return UserActionPlan(action, tuple(_release_step(item, context) for item in plan.items))


def _release_step(item: Item, context: UserActionContext) -> PlannedStep:
    act, node = item.act, item.node or "?"
    if isinstance(act, PodWrite):
        gpus = context.gpu_counts[act.uid]
        what = _text(act.how, pod=item.name, node=node, user=item.owner or UNKNOWN_USER)
        texts = (what, item.why, *_freed_text(gpus, node))
        return PlannedStep(item.id, act.how, item.name, texts, node, item.owner, gpus)
    if not isinstance(act, KillProcess):
        raise TypeError(f"unexpected step in a GPU release: {item.id}")
    values = item.why.values
    what = _text("kill", pid=act.pid, process=values.get("process", "?"), node=node, gpu=values.get("gpu", "?"))
    return PlannedStep(item.id, "kill", item.name, (what, item.why), node, item.owner, 1)


def plan_deletion(action: DeletePods, context: UserActionContext) -> UserActionPlan:
    """Steps of a deletion; a pod that no longer exists is a step of kind `gone`."""
    names = dict.fromkeys((pod.namespace, pod.name, pod.uid) for pod in action.pods)
    return UserActionPlan(action, tuple(_delete_step(context, *name) for name in names))


def _delete_step(context: UserActionContext, namespace: str, name: str, uid: str | None) -> PlannedStep:
    pod, target = context.pods_by_name.get((namespace, name)), f"{namespace}/{name}"
    if pod is None or uid not in (None, pod.uid):
        return PlannedStep(f"{target}/{uid or ''}", "gone", target, (_text("gone", pod=target),))
    user = context.owner(pod)
    values: dict[str, Value] = {"pod": target, "user": user or UNKNOWN_USER}
    gpus = 0
    if pod.finished:
        what = _text("delete-finished", **values, phase=pod.phase or "?")
    elif pod.node is None:
        what = _text("delete-waiting", **values)
    else:
        what, gpus = _text("delete", **values, node=pod.node), context.gpu_counts[pod.uid]
    texts = (what, *_freed_text(gpus, pod.node))
    warnings = tuple(_delete_warnings(pod, target))
    return PlannedStep(f"{target}/{pod.uid}", "delete", target, texts, pod.node, user, gpus, warnings, pod)


def _delete_warnings(pod: PodFact, target: str) -> list[Text]:
    warnings = []
    if pod.owner is not None and not pod.finished:
        warnings.append(_text("warn.comes-back", kind=pod.owner.kind, name=pod.owner.name, pod=target))
    if pod.namespace in SYSTEM_NAMESPACES:
        warnings.append(_text("warn.system", pod=target, namespace=pod.namespace))
    if pod.deletion_at is not None:
        warnings.append(_text("warn.terminating", pod=target))
    return warnings


def plan_cordon(action: Cordon | Uncordon, context: UserActionContext) -> UserActionPlan:
    """Steps of cordoning or uncordoning nodes. Raise ValueError, with a message for the user, for an unknown node."""
    steps = []
    running = Counter(pod.node for pod in context.pods if not pod.finished)
    for name in dict.fromkeys(action.nodes):
        node = context.nodes.get(name)
        if node is None or not node.in_kubernetes:
            raise ValueError(f"Kubernetes has no node {name!r}")
        count = running[name] if isinstance(action, Cordon) else (node.free or 0)
        already = node.schedulable is isinstance(action, Uncordon)
        key = "warn.cordoned" if isinstance(action, Cordon) else "warn.not-cordoned"
        warnings = (_text(key, node=name),) if already else ()
        text = _text(action.action, node=name, count=count)
        steps.append(PlannedStep(name, action.action, name, (text,), name, warnings=warnings))
    return UserActionPlan(action, tuple(steps))


def render_plan(plan: UserActionPlan, lang: str, *, dry_run: bool) -> UserActionOutcome:
    """A plan with its texts in one language."""
    steps = tuple(
        UserActionStep(
            key=step.key,
            kind=step.kind,
            target=step.target,
            text=_sentences(step.texts, lang),
            node=step.node,
            owner=step.owner,
            gpus=step.gpus,
            warnings=tuple(_sentences((text,), lang) for text in step.warnings),
        )
        for step in plan.steps
    )
    return UserActionOutcome(action=plan.action.action, dry_run=dry_run, plan=plan.digest, steps=steps)


def _sentences(texts: tuple[Text, ...], lang: str) -> str:
    sentences = []
    for text in texts:
        values = {
            name: say(lang, UNKNOWN_USER, {}) if value == UNKNOWN_USER else value for name, value in text.values.items()
        }
        sentences.append(sentence(msgspec.structs.replace(text, values=values), lang))
    return ("" if lang == "zh" else " ").join(sentences)


def _text(key: str, **values: Value) -> Text:
    return Text(key=f"act.{key}", values=values)


def _freed_text(gpus: int, node: str | None) -> tuple[Text, ...]:
    return (_text("frees", count=gpus, node=node or "?"),) if gpus else ()
