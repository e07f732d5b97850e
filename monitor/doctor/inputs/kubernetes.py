"""The API server, who it takes us for, and what it lets us do."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import msgspec

from monitor.base.threads import run_parallel
from monitor.config.cleanup import CleanupConfig
from monitor.config.policies import DatasetsConfig, GpusConfig, ImagesConfig, PodsConfig, PolicyConfig
from monitor.doctor.checks.kubernetes import KubeFacts
from monitor.doctor.checks.rights import Answer, ChartRole, Need, RightsFacts
from monitor.doctor.context import Cluster, Visit

if TYPE_CHECKING:
    from monitor.config.access import AccessConfig
    from monitor.config.lease import LeaseConfig
    from monitor.kube.client import KubeApi

JSON = "application/json"
READ_SECONDS = 2.5
RIGHTS_SECONDS = 4.0
REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
# The API server says who we are since 1.27; in v1 since 1.28.
WHO = ("v1", "v1beta1")


def cluster(visit: Visit) -> Cluster:
    """Meet the API server, if one is wanted."""
    wanted = visit.config.daemon.kubernetes
    if wanted.enabled == "no":
        return Cluster(KubeFacts("no"))
    from monitor.kube.client import NoClusterError, connect, context_name  # dear to import: only who asks for one

    try:
        api = connect(wanted.kubeconfig, wanted.context)
        context = context_name(wanted.kubeconfig, wanted.context)
    except NoClusterError as error:
        return Cluster(KubeFacts(wanted.enabled, no_credentials=" ".join(str(error).split()).rstrip(".")))
    return _meet(api, wanted.enabled, context)


def _meet(api: KubeApi, enabled: str, context: str | None) -> Cluster:
    from monitor.kube.client import ApiError, LostError

    try:
        version, offset = _version(api)
    except LostError as error:
        return Cluster(KubeFacts(enabled, host=api.host, context=context, lost=str(error)))
    except ApiError as error:
        refused = KubeFacts(enabled, host=api.host, context=context, refused=str(error), status=error.status)
        return Cluster(refused)
    except msgspec.MsgspecError as error:
        return Cluster(KubeFacts(enabled, host=api.host, context=context, refused=str(error)))
    try:
        user = _user(api)
    except ApiError as error:
        if error.status == HTTPStatus.UNAUTHORIZED:  # the version is told to anybody
            refused = KubeFacts(enabled, host=api.host, context=context, refused=str(error), status=error.status)
            return Cluster(refused)
        user = None
    except (LostError, msgspec.MsgspecError):
        user = None
    return Cluster(KubeFacts(enabled, host=api.host, context=context, user=user, version=version, offset=offset), api)


class _Version(msgspec.Struct):
    gitVersion: str  # noqa: N815  # theirs


def _version(api: KubeApi) -> tuple[str, float | None]:
    """Return the version of the API server, and how far its clock is ahead of ours, if it says what time it is."""
    before = time.time()
    stream = api.open("/version", {}, JSON, READ_SECONDS)
    try:
        between = (before + time.time()) / 2
        return msgspec.json.decode(stream.read(), type=_Version).gitVersion, _offset(stream.header("Date"), between)
    finally:
        stream.close()


def _offset(date: str | None, here: float) -> float | None:
    """Given the date of an answer, which was cut off to whole seconds, return how far that clock is ahead."""
    try:
        return parsedate_to_datetime(date).timestamp() + 0.5 - here if date else None
    except (ValueError, TypeError):
        return None


class _Person(msgspec.Struct):
    username: str = ""


class _Who(msgspec.Struct):
    userInfo: _Person | None = None  # noqa: N815  # theirs


class _Me(msgspec.Struct):
    status: _Who | None = None


def _user(api: KubeApi) -> str | None:
    """Return who the API server takes us for; None if it is too old to say. Raise ApiError or LostError."""
    from monitor.kube.client import ApiError

    for version in WHO:
        group = f"authentication.k8s.io/{version}"
        body = msgspec.json.encode({"apiVersion": group, "kind": "SelfSubjectReview"})
        try:
            found = msgspec.json.decode(
                api.send("POST", f"/apis/{group}/selfsubjectreviews", body, READ_SECONDS), type=_Me
            )
        except ApiError as error:
            if error.status == HTTPStatus.NOT_FOUND:
                continue
            raise
        return (found.status and found.status.userInfo and found.status.userInfo.username) or None
    return None


def rights(visit: Visit) -> RightsFacts:
    """Ask for every right that the configuration needs."""
    api = visit.cluster.get().api
    if api is None:
        return RightsFacts(None)
    daemon = visit.config.daemon
    served = _groups(api)
    needs = _once((*_reading(served), *_leading(daemon.lease), *_acting(daemon.cleanup, daemon.access, served)))
    outcomes = run_parallel([lambda need=need: _allowed(api, need) for need in needs], RIGHTS_SECONDS, workers=8)  # type: ignore[misc]  # one type of need
    return RightsFacts(
        tuple(
            Answer(need, outcome.value, str(outcome.error) if outcome.error else "no answer" if outcome.late else None)
            for need, outcome in zip(needs, outcomes, strict=True)
        )
    )


def _once(needs: Iterable[Need]) -> list[Need]:
    """Return each right once, by the first role that has it."""
    kept: dict[tuple[str, str, str], Need] = {}
    for need in needs:
        kept.setdefault((need.verb, need.resource, need.namespace), need)
    return list(kept.values())


class _Allowed(msgspec.Struct):
    allowed: bool


class _Review(msgspec.Struct):
    status: _Allowed


def _allowed(api: KubeApi, need: Need) -> bool:
    """Return whether we have a right. Raise ApiError or LostError."""
    body = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": need.attributes},
    }
    answer = api.send("POST", REVIEWS, msgspec.json.encode(body), READ_SECONDS)
    return msgspec.json.decode(answer, type=_Review).status.allowed


def _groups(api: KubeApi) -> frozenset[str]:
    """Return the API groups that are served; none if nobody tells: then the add-ons are taken for absent."""
    from monitor.kube.client import ApiError, LostError

    try:
        listed: Any = msgspec.json.decode(api.get("/apis", {}, JSON, READ_SECONDS))
        return frozenset(str(group.get("name")) for group in listed.get("groups") or ())
    except (ApiError, LostError, msgspec.MsgspecError, AttributeError):
        return frozenset()


def _reading(served: Iterable[str]) -> Iterator[Need]:
    """Yield what following the cluster takes."""
    from monitor.kube import resources as known
    from monitor.kube.decode.pod import Keep

    resources = (
        known.pods(Keep()), known.NODES, known.EVENTS, known.QUOTAS, known.NAMESPACES, known.REPLICA_SETS, known.JOBS,
        known.VOLCANO_QUEUES, known.POD_GROUPS, known.CLUSTER_QUEUES, known.LOCAL_QUEUES, known.WORKLOADS,
    )  # fmt: skip
    for resource in resources:
        if not resource.optional or resource.group in served:
            yield Need("list", resource.name, ChartRole.READ)
            yield Need("watch", resource.name, ChartRole.READ)


def _leading(lease: LeaseConfig | None) -> Iterator[Need]:
    """Yield what agreeing with other replicas takes."""
    if lease is not None:
        leases = "leases.coordination.k8s.io"
        yield Need("create", leases, ChartRole.LEASE, lease.namespace)
        yield Need("get", leases, ChartRole.LEASE, lease.namespace, lease.name)
        yield Need("update", leases, ChartRole.LEASE, lease.namespace, lease.name)


def _acting(cleanup: CleanupConfig, access: AccessConfig, served: frozenset[str]) -> Iterator[Need]:
    """Yield what the policies take, and what those who may act by the page can ask for."""
    for policy in cleanup.policies:
        yield from _policy(policy, served)
    header = access.trusted_header
    roles = [user.role for user in access.users] + [token.role for token in access.tokens]
    roles += [header.role] if header is not None else []
    if "user" in roles or "admin" in roles:
        yield Need("delete", "pods", ChartRole.RELEASE)
        yield Need("create", "pods/eviction", ChartRole.RELEASE)
    if "admin" in roles:
        yield Need("patch", "nodes", ChartRole.RELEASE)


def _policy(policy: PolicyConfig, served: frozenset[str]) -> Iterator[Need]:
    """Yield what one policy takes: reading for any, changing only if it is to change something."""
    from monitor.cleanup.plan.templates import KINDS

    if isinstance(policy, (ImagesConfig, DatasetsConfig)):  # which keep what any template names
        for kind in KINDS:
            if not kind.optional or kind.group in served:
                yield Need("list", kind.name, ChartRole.CLEANUP)
    if isinstance(policy, DatasetsConfig):
        yield Need("list", "persistentvolumeclaims", ChartRole.CLEANUP)
        yield Need("list", "persistentvolumes", ChartRole.CLEANUP)
    if policy.mode != "enforce":
        return
    if isinstance(policy, GpusConfig):
        yield Need("get", "pods", ChartRole.READ)
        yield Need("create", "pods/eviction", ChartRole.CLEANUP)
        if policy.delete_after is not None:
            yield Need("delete", "pods", ChartRole.CLEANUP)
    if isinstance(policy, PodsConfig):
        yield Need("get", "pods", ChartRole.READ)
        yield Need("delete", "pods", ChartRole.CLEANUP)
