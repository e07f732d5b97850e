"""What a person may do to the cluster: release a card, stop pods, keep new pods off a node.

First it is said exactly what will happen; then exactly that is done, or nothing if it is not the same any more; and
who did it is written down, before and after.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from http import HTTPStatus
from typing import Protocol

from msgspec.structs import replace

from monitor.access.errors import RefusedError
from monitor.access.principal import Person, Role
from monitor.actions.plan import (
    Asked,
    Cordon,
    DeletePods,
    Outcome,
    Planned,
    ReleaseGpu,
    Scene,
    Wanted,
    plan_cordon,
    plan_deletion,
    plan_release,
    shown,
)
from monitor.cleanup.execute.run_plan import LEASE_LOST
from monitor.cleanup.model import CleanupPlan
from monitor.facts.cluster import ClusterView, Identity
from monitor.facts.kube import PodFact
from monitor.i18n import say
from monitor.kube.pod_writes import WriteResult, WriteState
from monitor.leader.elector import LeaderElector, NotLeaderError, SingleReplica
from monitor.present.cleanup import ShownRun

CREW = 8  # pods that are deleted at the same time
MOST_PODS, MOST_NODES = 1000, 200


class ChangedError(Exception):
    """What would happen is not what was shown. `now` is what would happen now."""

    def __init__(self, now: Outcome) -> None:
        super().__init__("what would happen has changed; look again")
        self.now = now


class Cluster(Protocol):
    """The cluster as it is followed."""

    @property
    def view(self) -> ClusterView: ...

    def identities(self) -> dict[str, Identity]: ...


class Releasing(Protocol):
    """Who releases cards. Both raise ValueError in plain words."""

    def release_plan(self, node: str, gpu: str) -> CleanupPlan: ...

    def release(self, node: str, gpu: str, by: str, only: frozenset[str] | None = None) -> ShownRun: ...


class PodWriting(Protocol):
    """Who deletes pods."""

    def delete(self, namespace: str, name: str, uid: str, *, force: bool = False) -> WriteResult: ...


class NodeWriting(Protocol):
    """Who cordons nodes."""

    def cordon(self, name: str, *, cordoned: bool) -> WriteResult: ...


class Recording(Protocol):
    """Who writes down what people do."""

    def write(self, person: Person, peer: str, what: str, on: str, result: str, detail: str = "") -> None: ...


class Hands:
    """What acts in the cluster; without Kubernetes there is nothing to act on."""

    def __init__(
        self,
        releasing: Releasing,
        pods: PodWriting | None = None,
        nodes: NodeWriting | None = None,
        pod_facts: Callable[[], Sequence[PodFact]] = tuple,
    ) -> None:
        self.releasing = releasing
        self.pods = pods
        self.nodes = nodes
        self.pod_facts = pod_facts


class Acts:
    """Shows and does what people ask for. For use from any thread."""

    def __init__(self, cluster: Cluster, hands: Hands, record: Recording, leading: LeaderElector | None = None) -> None:
        self._leading = leading or SingleReplica()
        self._cluster = cluster
        self._hands = hands
        self._record = record

    def preview(self, wanted: Wanted, person: Person, lang: str) -> Outcome:
        """Return what would happen. Raise ValueError in plain words, or RefusedError if this person may not."""
        return shown(self._plan(wanted, person), lang, dry_run=True)

    def perform(
        self, wanted: Wanted, person: Person, lang: str, *, expect: str | None = None, peer: str = ""
    ) -> Outcome:
        """Do it, and return what became of each step. Raise as `preview` does, or NotLeadingError.

        Raise ChangedError, with nothing done, if `expect` is given and is not what would happen.
        """
        try:
            self._leading.check()
            planned = self._plan(wanted, person)
            if expect is not None and expect != planned.digest:
                raise ChangedError(shown(planned, lang, dry_run=True))
        except (ValueError, RefusedError, ChangedError, NotLeaderError) as error:
            self._record.write(person, peer, wanted.action, wanted.about, "refused", str(error))
            raise
        targets = " ".join(step.target for step in planned.steps)
        self._record.write(person, peer, wanted.action, targets, "begun")
        became = self._do(planned, f"{person.name}@{peer}" if peer else person.name)
        for step in planned.steps:
            done = became[step.key]
            said = " ".join(part for part in (done.word, done.message) if part)
            self._record.write(person, peer, wanted.action, f"{step.kind} {step.target}", done.state, said)
        outcome = shown(planned, lang, dry_run=False)
        steps = tuple(
            replace(
                step, state=became[step.key].state, outcome=became[step.key].word, message=became[step.key].message,
                said=say(lang, f"act.did.{became[step.key].state}", {}),
            )
            for step in outcome.steps
        )  # fmt: skip
        return replace(outcome, steps=steps, ok=all(step.state == WriteState.DONE for step in steps))

    # What would happen

    def _plan(self, wanted: Wanted, person: Person) -> Planned:
        if not person.may(Role.USER):
            raise RefusedError(HTTPStatus.FORBIDDEN, f"the role {person.role} only looks; this needs user or admin")
        planned = self._planned(wanted)
        strange = [step.target for step in planned.steps if step.kind != "gone" and not person.owns(step.owner)]
        if strange:
            whose = ", ".join(strange[:5]) + (", …" if len(strange) > 5 else "")
            raise RefusedError(HTTPStatus.FORBIDDEN, f"{person.name} may act on what is their own; not on {whose}")
        return planned

    def _planned(self, wanted: Wanted) -> Planned:
        if isinstance(wanted, ReleaseGpu):
            return plan_release(wanted, self._hands.releasing.release_plan(wanted.node, wanted.gpu), self._scene())
        if isinstance(wanted, DeletePods):
            if self._hands.pods is None:
                raise ValueError("there is no Kubernetes here")
            _check_count(len(wanted.pods), MOST_PODS, "pods")
            return plan_deletion(wanted, self._scene())
        if self._hands.nodes is None:
            raise ValueError("there is no Kubernetes here")
        _check_count(len(wanted.nodes), MOST_NODES, "nodes")
        return plan_cordon(wanted, self._scene())

    def _scene(self) -> Scene:
        return Scene(self._cluster.view, tuple(self._hands.pod_facts()), self._cluster.identities())

    # Doing it

    def _do(self, planned: Planned, by: str) -> Mapping[str, WriteResult]:
        wanted = planned.wanted
        if isinstance(wanted, ReleaseGpu):
            return self._release(wanted, planned, by)
        if isinstance(wanted, DeletePods):
            with ThreadPoolExecutor(CREW, "acts") as crew:
                done = list(crew.map(self._delete, planned.steps))
        else:
            done = [self._cordon(step, cordoned=isinstance(wanted, Cordon)) for step in planned.steps]
        return {step.key: each for step, each in zip(planned.steps, done, strict=True)}

    def _release(self, wanted: ReleaseGpu, planned: Planned, by: str) -> Mapping[str, WriteResult]:
        keys = frozenset(step.key for step in planned.steps)
        gone = WriteResult(WriteState.REFUSED, "changed")
        try:
            run = self._hands.releasing.release(wanted.node, wanted.gpu, by, keys)
        except ValueError as error:
            return dict.fromkeys(keys, WriteResult(WriteState.REFUSED, "changed", str(error)))
        except NotLeaderError as error:
            return dict.fromkeys(keys, _left(error))
        became = {
            entry.item.id: WriteResult(WriteState(entry.state), entry.outcome or entry.state, entry.message)
            for entry in run.items
            if entry.ended_at is not None
        }
        return {key: became.get(key, gone) for key in keys}

    def _delete(self, step: Asked) -> WriteResult:
        if step.pod is None:
            return WriteResult(WriteState.DONE, "gone")
        if self._hands.pods is None:
            return WriteResult(WriteState.FAILED, "failed", "there is no Kubernetes here")
        try:
            self._leading.check()  # before each: many take their time
        except NotLeaderError as error:
            return _left(error)
        return self._hands.pods.delete(step.pod.namespace, step.pod.name, step.pod.uid)

    def _cordon(self, step: Asked, *, cordoned: bool) -> WriteResult:
        if self._hands.nodes is None:
            return WriteResult(WriteState.FAILED, "failed", "there is no Kubernetes here")
        try:
            self._leading.check()
        except NotLeaderError as error:
            return _left(error)
        return self._hands.nodes.cordon(step.target, cordoned=cordoned)


def _left(error: NotLeaderError) -> WriteResult:
    return WriteResult(WriteState.LATER, LEASE_LOST, str(error))


def _check_count(count: int, most: int, what: str) -> None:
    if not 0 < count <= most:
        raise ValueError(f"name from 1 to {most} {what}")
