"""User actions on the cluster: release a GPU, delete pods, cordon nodes.

An action is previewed first. It is executed only if the plan is still the same, and audited before and after.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from http import HTTPStatus
from typing import Protocol

from msgspec.structs import replace

from monitor.access.audit import AuditWriter
from monitor.access.errors import RequestRejectedError
from monitor.access.principal import Principal, Role
from monitor.actions.plan import (
    Cordon,
    DeletePods,
    PlannedStep,
    ReleaseGpu,
    UserAction,
    UserActionContext,
    UserActionOutcome,
    UserActionPlan,
    plan_cordon,
    plan_deletion,
    plan_release,
    render_plan,
)
from monitor.base.threads import map_parallel
from monitor.cleanup.execute.run_plan import LEASE_LOST
from monitor.cleanup.model import CleanupPlan
from monitor.facts.cluster import ClusterView, Identity
from monitor.facts.kube import PodFact
from monitor.i18n import say
from monitor.kube.pod_writes import WriteResult, WriteState
from monitor.leader.elector import LeaderElector, NotLeaderError, SingleReplica
from monitor.present.cleanup import ShownRun

DELETE_WORKERS = 8
MAX_PODS, MAX_NODES = 1000, 200
MAX_NAMED_TARGETS = 5
NO_KUBERNETES = "Kubernetes is not configured"


class PlanChangedError(Exception):
    """The plan is no longer the one that was previewed. `now` is the current plan."""

    def __init__(self, now: UserActionOutcome) -> None:
        super().__init__("the plan has changed; preview it again")
        self.now = now


class ClusterReader(Protocol):
    """The current state of the cluster."""

    @property
    def view(self) -> ClusterView: ...

    def identities(self) -> dict[str, Identity]: ...


class GpuReleaser(Protocol):
    """Plans and executes the release of a GPU. Both raise ValueError with a message for the user."""

    def release_plan(self, node: str, gpu: str, /) -> CleanupPlan: ...

    def release(self, node: str, gpu: str, by: str, only: frozenset[str] | None = None, /) -> ShownRun: ...


class PodDeleter(Protocol):
    """Deletes pods."""

    def delete(self, namespace: str, name: str, uid: str, /, *, force: bool = False) -> WriteResult: ...


class NodeCordoner(Protocol):
    """Cordons and uncordons nodes."""

    def cordon(self, name: str, /, *, cordoned: bool) -> WriteResult: ...


class ActionDeps:
    """What actions are executed with; without Kubernetes there are no pods and nodes."""

    def __init__(
        self,
        releaser: GpuReleaser,
        pods: PodDeleter | None = None,
        nodes: NodeCordoner | None = None,
        pod_facts: Callable[[], Sequence[PodFact]] = tuple,
    ) -> None:
        self.releaser = releaser
        self.pods = pods
        self.nodes = nodes
        self.pod_facts = pod_facts


class ActionService:
    """Previews and performs user actions. Thread-safe."""

    def __init__(
        self, cluster: ClusterReader, deps: ActionDeps, audit: AuditWriter, leader: LeaderElector | None = None
    ) -> None:
        self._leader = leader or SingleReplica()
        self._cluster = cluster
        self._deps = deps
        self._audit = audit

    def preview(self, action: UserAction, principal: Principal, lang: str, /) -> UserActionOutcome:
        """The planned steps. Raise ValueError with a message for the user, or RequestRejectedError if forbidden."""
        return render_plan(self._authorized_plan(action, principal), lang, dry_run=True)

    def perform(
        self, action: UserAction, principal: Principal, lang: str, /, *, expect: str | None = None, peer: str = ""
    ) -> UserActionOutcome:
        """Execute the action and return the result of each step. Raise as `preview` does, or NotLeadingError.

        Raise PlanChangedError without doing anything if `expect` is given and is not the digest of the current plan.
        """
        try:
            self._leader.check()
            plan = self._authorized_plan(action, principal)
            if expect is not None and expect != plan.digest:
                raise PlanChangedError(render_plan(plan, lang, dry_run=True))
        except (ValueError, RequestRejectedError, PlanChangedError, NotLeaderError) as error:
            self._audit.write(principal, peer, action.action, action.target, "refused", str(error))
            raise
        where = f" on {action.target}" if isinstance(action, ReleaseGpu) else ""  # its steps name pods and processes
        targets = " ".join(step.target for step in plan.steps)
        self._audit.write(principal, peer, action.action, f"{targets}{where}", "begun")
        results = self._execute(plan, f"{principal.name}@{peer}" if peer else principal.name)
        for step in plan.steps:
            result = results[step.key]
            detail = " ".join(part for part in (result.word, result.message) if part)
            target = f"{step.kind} {step.target}{where}"
            self._audit.write(principal, peer, action.action, target, result.state, detail)
        return _with_results(render_plan(plan, lang, dry_run=False), results, lang)

    # Planning

    def _authorized_plan(self, action: UserAction, principal: Principal) -> UserActionPlan:
        if not principal.has_role(Role.USER):
            message = f"the role {principal.role} is read-only; this needs the role user or admin"
            raise RequestRejectedError(HTTPStatus.FORBIDDEN, message)
        plan = self._plan(action)
        foreign = [step.target for step in plan.steps if step.kind != "gone" and not principal.may_act_on(step.owner)]
        if foreign:
            named = ", ".join(foreign[:MAX_NAMED_TARGETS]) + (", …" if len(foreign) > MAX_NAMED_TARGETS else "")
            message = f"{principal.name} may act on their own workloads only, not on {named}"
            raise RequestRejectedError(HTTPStatus.FORBIDDEN, message)
        return plan

    def _plan(self, action: UserAction) -> UserActionPlan:
        if isinstance(action, ReleaseGpu):
            return plan_release(action, self._deps.releaser.release_plan(action.node, action.gpu), self._context())
        if isinstance(action, DeletePods):
            if self._deps.pods is None:
                raise ValueError(NO_KUBERNETES)
            _check_count(len(action.pods), MAX_PODS, "pods")
            return plan_deletion(action, self._context())
        if self._deps.nodes is None:
            raise ValueError(NO_KUBERNETES)
        _check_count(len(action.nodes), MAX_NODES, "nodes")
        return plan_cordon(action, self._context())

    def _context(self) -> UserActionContext:
        return UserActionContext(self._cluster.view, tuple(self._deps.pod_facts()), self._cluster.identities())

    # Execution

    def _execute(self, plan: UserActionPlan, by: str) -> Mapping[str, WriteResult]:
        action = plan.action
        if isinstance(action, ReleaseGpu):
            return self._release(action, plan, by)
        if isinstance(action, DeletePods):
            results = map_parallel(self._delete, plan.steps, DELETE_WORKERS, "delete-pods")
        else:
            results = [self._cordon(step, cordoned=isinstance(action, Cordon)) for step in plan.steps]
        return {step.key: result for step, result in zip(plan.steps, results, strict=True)}

    def _release(self, action: ReleaseGpu, plan: UserActionPlan, by: str) -> Mapping[str, WriteResult]:
        keys = frozenset(step.key for step in plan.steps)
        try:
            run = self._deps.releaser.release(action.node, action.gpu, by, keys)
        except ValueError as error:
            return dict.fromkeys(keys, WriteResult(WriteState.REFUSED, "changed", str(error)))
        except NotLeaderError as error:
            return dict.fromkeys(keys, _lease_lost(error))
        results = {
            entry.item.id: WriteResult(WriteState(entry.state), entry.outcome or entry.state, entry.message)
            for entry in run.items
            if entry.ended_at is not None
        }
        return {key: results.get(key, WriteResult(WriteState.REFUSED, "changed")) for key in keys}

    def _delete(self, step: PlannedStep) -> WriteResult:
        if step.pod is None:
            return WriteResult(WriteState.DONE, "gone")
        if self._deps.pods is None:
            return WriteResult(WriteState.FAILED, "failed", NO_KUBERNETES)
        try:
            self._leader.check()  # before each pod: deleting many takes a while
        except NotLeaderError as error:
            return _lease_lost(error)
        return self._deps.pods.delete(step.pod.namespace, step.pod.name, step.pod.uid)

    def _cordon(self, step: PlannedStep, *, cordoned: bool) -> WriteResult:
        if self._deps.nodes is None:
            return WriteResult(WriteState.FAILED, "failed", NO_KUBERNETES)
        try:
            self._leader.check()
        except NotLeaderError as error:
            return _lease_lost(error)
        return self._deps.nodes.cordon(step.target, cordoned=cordoned)


def _with_results(outcome: UserActionOutcome, results: Mapping[str, WriteResult], lang: str) -> UserActionOutcome:
    steps = tuple(
        replace(
            step, state=results[step.key].state, outcome=results[step.key].word, message=results[step.key].message,
            said=say(lang, f"act.did.{results[step.key].state}", {}),
        )
        for step in outcome.steps
    )  # fmt: skip
    return replace(outcome, steps=steps, ok=all(step.state == WriteState.DONE for step in steps))


def _lease_lost(error: NotLeaderError) -> WriteResult:
    return WriteResult(WriteState.LATER, LEASE_LOST, str(error))


def _check_count(count: int, maximum: int, what: str) -> None:
    if not 0 < count <= maximum:
        raise ValueError(f"name from 1 to {maximum} {what}")
