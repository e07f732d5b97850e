"""The API server: reachable, accepting our credentials, and of a tested version."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass, field, replace
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import msgspec

from monitor.doctor.context import DoctorContext
from monitor.doctor.model import Check, Verdicts, not_checked, ok, problem, warning

if TYPE_CHECKING:
    from monitor.kube.client import KubeApi

JSON = "application/json"
READ_SECONDS = 2.5
TIMEOUT_SECONDS = 6.0  # connecting alone may take 5
OLDEST = (1, 20)
REVIEW_VERSIONS = ("v1", "v1beta1")  # of SelfSubjectReview: v1 since Kubernetes 1.28, v1beta1 since 1.27


@dataclass(frozen=True)
class KubeFacts:
    """The API server, and a client for it if it answers.

    `enabled` is the setting: auto, yes or no. `no_credentials`, `lost` and `refused` (with `status`) say why there is
    no answer. `offset` is how many seconds its clock is ahead of ours, accurate to about a second.
    """

    enabled: str
    no_credentials: str | None = None
    host: str = ""
    context: str | None = None
    user: str | None = None
    version: str | None = None
    offset: float | None = None
    lost: str | None = None
    refused: str | None = None
    status: int | None = None
    api: KubeApi | None = field(default=None, repr=False)


def judge(facts: KubeFacts) -> Verdicts:
    """Why the API server cannot be used, if so."""
    if facts.enabled == "no":
        return (not_checked("kubernetes.off"),)
    if facts.no_credentials is not None:
        verdict = problem if facts.enabled == "yes" else not_checked
        return (verdict("kubernetes.no-credentials", why=facts.no_credentials),)
    if facts.lost is not None:
        return (problem("kubernetes.lost", host=facts.host, why=facts.lost),)
    if facts.status == HTTPStatus.UNAUTHORIZED:
        return (problem("kubernetes.unauthorized", host=facts.host),)
    if facts.version is None:
        return (problem("kubernetes.refused", host=facts.host, why=facts.refused or "?"),)
    if _minor(facts.version) < OLDEST:
        oldest = ".".join(map(str, OLDEST))
        return (warning("kubernetes.old", host=facts.host, version=facts.version, oldest=oldest),)
    server = {"host": facts.host, "version": facts.version, "context": facts.context or "in-cluster"}
    return (ok("kubernetes.as", user=facts.user, **server) if facts.user else ok("kubernetes.ok", **server),)


def _minor(version: str) -> tuple[int, ...]:
    """(1, 28) of `v1.28.3+k3s1`. A version that cannot be parsed counts as tested."""
    match = re.match(r"v?(\d+)\.(\d+)", version)
    return tuple(map(int, match.groups())) if match else OLDEST


def read(context: DoctorContext) -> KubeFacts:
    """Connect to the API server, unless the configuration disables it."""
    settings = context.config.daemon.kubernetes
    if settings.enabled == "no":
        return KubeFacts("no")
    from monitor.kube.client import KubeCredentialsError, connect, context_name  # expensive to import

    try:
        api = connect(settings.kubeconfig, settings.context)
        facts = KubeFacts(settings.enabled, host=api.host, context=context_name(settings.kubeconfig, settings.context))
    except KubeCredentialsError as error:
        return KubeFacts(settings.enabled, no_credentials=" ".join(str(error).split()).rstrip("."))
    return _query(api, facts)


def _query(api: KubeApi, facts: KubeFacts) -> KubeFacts:
    from monitor.kube.client import ApiConnectionError, ApiError

    try:
        version, offset = _version(api)
    except ApiConnectionError as error:
        return replace(facts, lost=str(error))
    except ApiError as error:
        return replace(facts, refused=str(error), status=error.status)
    except msgspec.MsgspecError as error:
        return replace(facts, refused=str(error))
    user = None
    try:
        user = _user(api)
    except ApiError as error:
        if error.status == HTTPStatus.UNAUTHORIZED:  # /version needs no credentials
            return replace(facts, refused=str(error), status=error.status)
    except (ApiConnectionError, msgspec.MsgspecError):
        pass
    return replace(facts, user=user, version=version, offset=offset, api=api)


class _ServerVersion(msgspec.Struct):
    gitVersion: str  # noqa: N815  # name of the Kubernetes API


def _version(api: KubeApi) -> tuple[str, float | None]:
    """Version of the API server, and how far its clock is ahead of ours, if the reply has a date."""
    before = time.time()
    stream = api.open("/version", {}, JSON, READ_SECONDS)
    try:
        midpoint = (before + time.time()) / 2
        version = msgspec.json.decode(stream.read(READ_SECONDS), type=_ServerVersion).gitVersion
        return version, _offset(stream.header("Date"), midpoint)
    finally:
        stream.close()


def _offset(date: str | None, now: float) -> float | None:
    """How far the clock behind an HTTP date, which is truncated to whole seconds, is ahead of ours."""
    try:
        return parsedate_to_datetime(date).timestamp() + 0.5 - now if date else None
    except (ValueError, TypeError):
        return None


class _Review(msgspec.Struct):
    status: dict[str, Any] = {}


def create_review(api: KubeApi, group: str, kind: str, **fields: object) -> dict[str, Any]:
    """Status of a new review object, such as a SelfSubjectReview. Raise ApiError or LostError."""
    body = msgspec.json.encode({"apiVersion": group, "kind": kind, **fields})
    reply = api.send("POST", f"/apis/{group}/{kind.lower()}s", body, READ_SECONDS)
    return msgspec.json.decode(reply, type=_Review).status


def _user(api: KubeApi) -> str | None:
    """Our user name in the cluster; None if the API server is too old to report it. Raise ApiError or LostError."""
    from monitor.kube.client import ApiError

    for version in REVIEW_VERSIONS:
        try:
            status = create_review(api, f"authentication.k8s.io/{version}", "SelfSubjectReview")
        except ApiError as error:
            if error.status == HTTPStatus.NOT_FOUND:
                continue
            raise
        return (status.get("userInfo") or {}).get("username") or None
    return None


CHECKS = (Check("kubernetes.api", read, judge, TIMEOUT_SECONDS),)
