"""What an action of a person would do, step by step. Pure."""

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

SYSTEM = ("kube-system", "kube-public", "kube-node-lease")
NOBODY = "act.nobody"


class PodName(Fact, frozen=True, kw_only=True):
    """A pod. With its uid it is that one, and not a later one of the same name."""

    namespace: str
    name: str
    uid: str | None = None


class ReleaseGpu(Fact, frozen=True, kw_only=True):
    """That a card, by its index or uuid, is released by whoever holds it for nothing."""

    action: ClassVar[str] = "release-gpu"
    node: str
    gpu: str

    @property
    def about(self) -> str:
        return f"{self.node}/{self.gpu}"


class DeletePods(Fact, frozen=True, kw_only=True):
    """That pods are deleted."""

    action: ClassVar[str] = "delete-pods"
    pods: tuple[PodName, ...]

    @property
    def about(self) -> str:
        return " ".join(f"{pod.namespace}/{pod.name}" for pod in self.pods)


class Cordon(Fact, frozen=True, kw_only=True):
    """That no new pods are placed on nodes."""

    action: ClassVar[str] = "cordon"
    nodes: tuple[str, ...]

    @property
    def about(self) -> str:
        return " ".join(self.nodes)


class Uncordon(Fact, frozen=True, kw_only=True):
    """That new pods are placed on nodes again."""

    action: ClassVar[str] = "uncordon"
    nodes: tuple[str, ...]

    @property
    def about(self) -> str:
        return " ".join(self.nodes)


Wanted = ReleaseGpu | DeletePods | Cordon | Uncordon


class Step(Fact, frozen=True, kw_only=True):
    """One thing that will happen, or that has. `kind` is kill, evict, delete, gone, cordon or uncordon.

    `key` is what it is known by, `text` the sentence for it. Once it was done, `state` is done, refused, later or
    failed; `outcome` is the word for programs, `message` what was said by who did it, and `said` the sentence.
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


class Outcome(Fact, frozen=True, kw_only=True):
    """What will happen (`dry_run`), or what has. `plan` is the same as long as the steps are; `ok` if all was done."""

    action: str
    dry_run: bool
    plan: str
    steps: tuple[Step, ...]
    ok: bool | None = None


@dataclass(frozen=True)
class Asked:
    """A step before it is put into words."""

    key: str
    kind: str
    target: str
    notes: tuple[Text, ...]
    node: str | None = None
    owner: str | None = None
    gpus: int = 0
    warnings: tuple[Text, ...] = ()
    pod: PodFact | None = None


@dataclass(frozen=True)
class Planned:
    """What would happen."""

    wanted: Wanted
    steps: tuple[Asked, ...]

    @property
    def digest(self) -> str:
        """Return what tells this from any other plan."""
        steps = sorted(f"{step.kind} {step.key}" for step in self.steps)
        told = "\n".join((self.wanted.action, *steps))
        return hashlib.sha256(told.encode("utf-8", "surrogatepass")).hexdigest()[:16]


@dataclass(frozen=True)
class Scene:
    """The cluster at one moment."""

    view: ClusterView
    pods: tuple[PodFact, ...]
    identities: Mapping[str, Identity]

    @cached_property
    def by_name(self) -> dict[tuple[str, str], PodFact]:
        """The pods by namespace and name."""
        return {(pod.namespace, pod.name): pod for pod in self.pods}

    @cached_property
    def nodes(self) -> dict[str, NodeView]:
        """The nodes by name."""
        return {node.name: node for node in self.view.nodes}

    @cached_property
    def cards(self) -> Counter[str]:
        """How many cards each pod has, by uid."""
        return Counter(holder.pod_uid for gpu in self.view.gpus for holder in gpu.holders if holder.pod_uid)

    def user(self, pod: PodFact) -> str | None:
        """Return whose a pod is."""
        known = self.identities.get(pod.uid)
        return known.user if known is not None else None


def plan_release(wanted: ReleaseGpu, plan: CleanupPlan, scene: Scene) -> Planned:
    """Given what a release would do, return it as steps. Raise ValueError, in words for a user, if there is none."""
    if plan.refused is not None:
        raise ValueError(sentence(plan.refused, "en"))
    return Planned(wanted, tuple(_released(item, scene) for item in plan.items))


def _released(item: Item, scene: Scene) -> Asked:
    act, node = item.act, item.node or "?"
    if isinstance(act, PodWrite):
        gpus = scene.cards[act.uid]
        what = _note(act.how, pod=item.name, node=node, user=item.owner or NOBODY)
        return Asked(item.id, act.how, item.name, (what, item.why, *_frees(gpus, node)), node, item.owner, gpus)
    if not isinstance(act, KillProcess):
        raise TypeError(f"a release does nothing like {item.id}")
    values = item.why.values
    what = _note("kill", pid=act.pid, process=values.get("process", "?"), node=node, gpu=values.get("gpu", "?"))
    return Asked(item.id, "kill", item.name, (what, item.why), node, item.owner, 1)


def plan_deletion(wanted: DeletePods, scene: Scene) -> Planned:
    """Given which pods are to go, return that as steps; one that is gone already is one of them."""
    names = dict.fromkeys((pod.namespace, pod.name, pod.uid) for pod in wanted.pods)
    return Planned(wanted, tuple(_deleted(scene, *name) for name in names))


def _deleted(scene: Scene, namespace: str, name: str, uid: str | None) -> Asked:
    pod, target = scene.by_name.get((namespace, name)), f"{namespace}/{name}"
    if pod is None or uid not in (None, pod.uid):
        return Asked(f"{target}/{uid or ''}", "gone", target, (_note("gone", pod=target),))
    user = scene.user(pod)
    who: dict[str, Value] = {"pod": target, "user": user or NOBODY}
    gpus = 0
    if pod.finished:
        what = _note("delete-finished", **who, phase=pod.phase or "?")
    elif pod.node is None:
        what = _note("delete-waiting", **who)
    else:
        what, gpus = _note("delete", **who, node=pod.node), scene.cards[pod.uid]
    notes = (what, *_frees(gpus, pod.node))
    return Asked(
        f"{target}/{pod.uid}", "delete", target, notes, pod.node, user, gpus, tuple(_worries(pod, target)), pod
    )


def _worries(pod: PodFact, target: str) -> list[Text]:
    found = []
    if pod.owner is not None and not pod.finished:
        found.append(_note("warn.comes-back", kind=pod.owner.kind, name=pod.owner.name, pod=target))
    if pod.namespace in SYSTEM:
        found.append(_note("warn.system", pod=target, namespace=pod.namespace))
    if pod.deletion_at is not None:
        found.append(_note("warn.terminating", pod=target))
    return found


def plan_cordon(wanted: Cordon | Uncordon, scene: Scene) -> Planned:
    """Given which nodes, return that as steps. Raise ValueError, in words for a user, if one is not known."""
    steps = []
    running = Counter(pod.node for pod in scene.pods if not pod.finished)
    for name in dict.fromkeys(wanted.nodes):
        node = scene.nodes.get(name)
        if node is None or not node.in_kubernetes:
            raise ValueError(f"Kubernetes has no node {name!r}")
        count = running[name] if isinstance(wanted, Cordon) else (node.free or 0)
        already = node.schedulable is isinstance(wanted, Uncordon)
        word = "warn.cordoned" if isinstance(wanted, Cordon) else "warn.not-cordoned"
        worries = (_note(word, node=name),) if already else ()
        note = _note(wanted.action, node=name, count=count)
        steps.append(Asked(name, wanted.action, name, (note,), name, warnings=worries))
    return Planned(wanted, tuple(steps))


def shown(planned: Planned, lang: str, *, dry_run: bool) -> Outcome:
    """Given what would happen, return it in words."""
    steps = tuple(
        Step(
            key=step.key,
            kind=step.kind,
            target=step.target,
            text=_sentences(step.notes, lang),
            node=step.node,
            owner=step.owner,
            gpus=step.gpus,
            warnings=tuple(_sentences((note,), lang) for note in step.warnings),
        )
        for step in planned.steps
    )
    return Outcome(action=planned.wanted.action, dry_run=dry_run, plan=planned.digest, steps=steps)


def _sentences(notes: tuple[Text, ...], lang: str) -> str:
    said = []
    for note in notes:
        values = {name: say(lang, NOBODY, {}) if value == NOBODY else value for name, value in note.values.items()}
        said.append(sentence(msgspec.structs.replace(note, values=values), lang))
    return ("" if lang == "zh" else " ").join(said)


def _note(word: str, **values: Value) -> Text:
    return Text(key=f"act.{word}", values=values)


def _frees(gpus: int, node: str | None) -> tuple[Text, ...]:
    return (_note("frees", count=gpus, node=node or "?"),) if gpus else ()
