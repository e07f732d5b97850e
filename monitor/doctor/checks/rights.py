"""The rights of our account in Kubernetes, against those that the configuration needs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any

import msgspec

from monitor.base.threads import run_parallel
from monitor.config.cleanup import CleanupConfig
from monitor.config.policies import (
    DatasetPolicyConfig,
    GpuPolicyConfig,
    ImagePolicyConfig,
    PodPolicyConfig,
    PolicyConfig,
)
from monitor.doctor.checks import kubernetes
from monitor.doctor.checks.kubernetes import JSON, READ_SECONDS, create_review
from monitor.doctor.context import DoctorContext
from monitor.doctor.model import CLUSTER_TIMEOUT_SECONDS, Check, Verdicts, not_checked, ok, problem, warning

if TYPE_CHECKING:
    from monitor.config.access import AccessConfig
    from monitor.config.lease import LeaseConfig
    from monitor.kube.client import KubeApi

ALL_REVIEWS_SECONDS = 4.0
REVIEW_WORKERS = 8
LEASES = "leases.coordination.k8s.io"


class ChartRole(StrEnum):
    """A role of the Helm chart, for a release named `gpuwarden`; the full name may start with the namespace."""

    READ = "gpuwarden-read"
    RELEASE = "gpuwarden-release"
    CLEANUP = "gpuwarden-cleanup"
    LEASE = "gpuwarden-lease"


# The chart value that creates and binds each role.
CHART_VALUES = {
    ChartRole.READ: "rbac.create",
    ChartRole.RELEASE: "rbac.release",
    ChartRole.CLEANUP: "rbac.cleanup",
    ChartRole.LEASE: "daemon.replicas",
}


@dataclass(frozen=True)
class RequiredRight:
    """A verb, a resource with its group as RBAC writes it (`pods/eviction`, `jobs.batch`), and the role granting it.

    An empty namespace means all namespaces, an empty name all objects.
    """

    verb: str
    resource: str
    role: ChartRole
    namespace: str = ""
    name: str = ""

    @property
    def attributes(self) -> dict[str, str]:
        """The `resourceAttributes` of a SelfSubjectAccessReview."""
        plural, _, group = self.resource.partition(".")
        plural, _, subresource = plural.partition("/")
        attributes = {"verb": self.verb, "resource": plural, "group": group, "subresource": subresource}
        attributes |= {"namespace": self.namespace, "name": self.name}
        return {key: value for key, value in attributes.items() if value}


@dataclass(frozen=True)
class RightReview:
    """Whether we have a right; None if the API server could not say, for the reason `why`."""

    right: RequiredRight
    allowed: bool | None
    why: str | None = None


def judge(reviews: tuple[RightReview, ...] | None) -> Verdicts:
    """Missing rights, each with the role that grants it. `reviews` is None without an API server."""
    if reviews is None:
        return (not_checked("rights.nobody"),)
    missing: dict[tuple[str, ChartRole], list[str]] = {}
    for review in reviews:
        if review.allowed is False:
            missing.setdefault((review.right.resource, review.right.role), []).append(review.right.verb)
    verdicts = [
        problem("rights.missing", verbs=", ".join(verbs), resource=resource, role=role.value, value=CHART_VALUES[role])
        for (resource, role), verbs in missing.items()
    ]
    unknown = [review for review in reviews if review.allowed is None]
    if unknown:
        rights = ", ".join(dict.fromkeys(f"{review.right.verb} {review.right.resource}" for review in unknown))
        verdicts.append(warning("rights.unknown", count=len(unknown), rights=rights, why=unknown[0].why or "?"))
    return tuple(verdicts) or (ok("rights.ok", count=len(reviews)),)


def read(context: DoctorContext) -> tuple[RightReview, ...] | None:
    """Ask the API server about every right that the configuration needs."""
    api = context.cached(kubernetes.read).api
    if api is None:
        return None
    rights = _required(context, _served_groups(api))
    outcomes = run_parallel([partial(_allowed, api, right) for right in rights], ALL_REVIEWS_SECONDS, REVIEW_WORKERS)
    return tuple(
        RightReview(right, outcome.value, str(outcome.error or "no answer"))
        for right, outcome in zip(rights, outcomes, strict=True)
    )


def _allowed(api: KubeApi, right: RequiredRight) -> bool:
    """Whether we have a right. Raise ApiError or LostError."""
    spec = {"resourceAttributes": right.attributes}
    return bool(create_review(api, "authorization.k8s.io/v1", "SelfSubjectAccessReview", spec=spec)["allowed"])


def _served_groups(api: KubeApi) -> frozenset[str]:
    """API groups of the cluster; empty if they cannot be listed, so that add-ons count as absent."""
    from monitor.kube.client import ApiConnectionError, ApiError

    try:
        reply: Any = msgspec.json.decode(api.get("/apis", {}, JSON, READ_SECONDS))
        return frozenset(str(group.get("name")) for group in reply.get("groups") or ())
    except (ApiError, ApiConnectionError, msgspec.MsgspecError, AttributeError):
        return frozenset()


def _required(context: DoctorContext, served: frozenset[str]) -> list[RequiredRight]:
    """Each right once, with the first role that grants it."""
    daemon = context.config.daemon
    sources = _to_watch(served), _to_lead(daemon.lease), _to_clean(daemon.cleanup, served), _to_act(daemon.access)
    rights: dict[tuple[str, str, str], RequiredRight] = {}
    for right in chain(*sources):
        rights.setdefault((right.verb, right.resource, right.namespace), right)
    return list(rights.values())


def _to_watch(served: Iterable[str]) -> Iterator[RequiredRight]:
    from monitor.kube import resources as known
    from monitor.kube.decode.pod import PodFieldFilter

    resources = (
        known.pods(PodFieldFilter()), known.NODES, known.EVENTS, known.QUOTAS, known.NAMESPACES, known.REPLICA_SETS,
        known.JOBS, known.VOLCANO_QUEUES, known.POD_GROUPS, known.CLUSTER_QUEUES, known.LOCAL_QUEUES, known.WORKLOADS,
        *known.DEVICE_RESOURCES,
    )  # fmt: skip
    for resource in resources:
        if not resource.optional or resource.group in served:
            yield RequiredRight("list", resource.name, ChartRole.READ)
            yield RequiredRight("watch", resource.name, ChartRole.READ)


def _to_lead(lease: LeaseConfig | None) -> Iterator[RequiredRight]:
    if lease is not None:
        yield RequiredRight("create", LEASES, ChartRole.LEASE, lease.namespace)
        yield RequiredRight("get", LEASES, ChartRole.LEASE, lease.namespace, lease.name)
        yield RequiredRight("update", LEASES, ChartRole.LEASE, lease.namespace, lease.name)


def _to_clean(cleanup: CleanupConfig, served: frozenset[str]) -> Iterator[RequiredRight]:
    for policy in cleanup.policies:
        yield from _to_plan(policy, served)
        if policy.mode == "enforce":
            yield from _to_enforce(policy)


def _to_plan(policy: PolicyConfig, served: frozenset[str]) -> Iterator[RequiredRight]:
    from monitor.cleanup.plan.workload_templates import KINDS

    if isinstance(
        policy, (ImagePolicyConfig, DatasetPolicyConfig)
    ):  # they keep everything that a pod template references
        for kind in KINDS:
            if not kind.optional or kind.group in served:
                yield RequiredRight("list", kind.name, ChartRole.CLEANUP)
    if isinstance(policy, DatasetPolicyConfig):
        yield RequiredRight("list", "persistentvolumeclaims", ChartRole.CLEANUP)
        yield RequiredRight("list", "persistentvolumes", ChartRole.CLEANUP)


def _to_enforce(policy: PolicyConfig) -> Iterator[RequiredRight]:
    if isinstance(policy, (GpuPolicyConfig, PodPolicyConfig)):
        yield RequiredRight("get", "pods", ChartRole.READ)
    if isinstance(policy, GpuPolicyConfig):
        yield RequiredRight("create", "pods/eviction", ChartRole.CLEANUP)
    if isinstance(policy, PodPolicyConfig) or (isinstance(policy, GpuPolicyConfig) and policy.delete_after is not None):
        yield RequiredRight("delete", "pods", ChartRole.CLEANUP)


def _to_act(access: AccessConfig) -> Iterator[RequiredRight]:
    """Rights for the actions that users can request through the page or the API."""
    header = access.trusted_header
    roles = {user.role for user in access.users} | {token.role for token in access.tokens}
    roles |= {header.role} if header is not None else set()
    if roles & {"user", "admin"}:
        yield RequiredRight("delete", "pods", ChartRole.RELEASE)
        yield RequiredRight("create", "pods/eviction", ChartRole.RELEASE)
    if "admin" in roles:
        yield RequiredRight("patch", "nodes", ChartRole.RELEASE)


CHECKS = (Check("kubernetes.rights", read, judge, CLUSTER_TIMEOUT_SECONDS),)
