"""Queries of the command line: answered by the daemon if one runs here, else by the cluster itself."""

from __future__ import annotations

import contextlib
import http
from collections.abc import Iterator, Mapping
from typing import TypeVar
from urllib.parse import urlencode

import msgspec

from monitor.access.local_token import read_local_token, token_path
from monitor.base import logs
from monitor.base.net import connect_host
from monitor.base.peer_http import PeerClient, PeerError, PeerTimeoutError
from monitor.base.peer_wire import PeerReply
from monitor.config.root import Config
from monitor.config.types import Listen
from monitor.daemon.build import make_cluster
from monitor.facts.cluster import ClusterView
from monitor.kube.client import KubeCredentialsError
from monitor.present.findings import LocalizedFinding
from monitor.queries.cluster import ClusterQueries, PodExplanation

TIMEOUT_SECONDS = 10.0
SETTLE_SECONDS = 15.0
MAX_BODY_BYTES = 512 * 1024 * 1024
T = TypeVar("T")


class QueryError(Exception):
    """The query failed; the message is one sentence that says what to change."""


class NoDaemonError(QueryError):
    """No daemon answers here."""


def view_now(config: Config) -> ClusterView:
    """Current view of the cluster. Raise QueryError."""
    view = _try_daemon(config, "/v1/view", ClusterView)
    if view is not None:
        return view
    with _direct_queries(config) as queries:
        return queries.view()


def findings_now(config: Config, lang: str) -> tuple[LocalizedFinding, ...] | None:
    """Current findings. None without a daemon: most rules need continuous evaluation."""
    return _try_daemon(config, f"/v1/findings?{urlencode({'lang': lang})}", tuple[LocalizedFinding, ...])


def why_now(config: Config, name: str, namespace: str | None, lang: str) -> PodExplanation:
    """Explanation of the state of a pod or job. Raise QueryError."""
    query = {"name": name, "lang": lang} | ({"namespace": namespace} if namespace else {})
    explanation = _try_daemon(config, f"/v1/why?{urlencode(query)}", PodExplanation)
    if explanation is not None:
        return explanation
    with _direct_queries(config) as queries:
        return queries.why(name, namespace, lang)


def call_daemon(
    config: Config, method: str, path: str, form: type[T], payload: object = None, timeout: float = TIMEOUT_SECONDS
) -> T:
    """Response of the daemon to a request. Raise QueryError with its error message, NoDaemonError if none runs."""
    body = None if payload is None else msgspec.json.encode(payload)
    try:
        reply = _request(config, method, path, body, timeout)
        if reply.status < http.HTTPStatus.MULTIPLE_CHOICES:
            return msgspec.json.decode(reply.body, type=form)
        if reply.status == http.HTTPStatus.UNAUTHORIZED and _configured_token(config) is None:
            raise QueryError(_missing_token(config))
        message = msgspec.json.decode(reply.body, type=_ErrorReply).error
    except PeerTimeoutError:
        raise QueryError(f"the daemon on {config.daemon.listen} has not answered within {timeout:g} s") from None
    except (PeerError, msgspec.MsgspecError, UnicodeError):
        raise NoDaemonError(
            f"no daemon answers on {config.daemon.listen}; start one with gpuwarden daemon, or correct daemon.listen"
        ) from None
    raise QueryError(f"the daemon says: {message}")


def _request(config: Config, method: str, path: str, body: bytes | None, timeout: float) -> PeerReply:
    """Reply of the daemon. Changes are sent with a token, queries with a local one only if the daemon requires it."""
    listen = config.daemon.listen
    target = str(Listen(host=connect_host(listen.host), port=listen.port))
    client = PeerClient(timeout, MAX_BODY_BYTES)

    def send(token: str | None) -> PeerReply:
        headers = {"Authorization": f"Bearer {token}"} if token is not None else {}
        return client.request(target, method, path, body, headers | {"Content-Type": "application/json"})

    configured = _configured_token(config)
    if configured is not None:
        return send(configured)
    local = _local_token(config)
    reply = send(None if method == "GET" else local)
    if reply.status == http.HTTPStatus.UNAUTHORIZED and method == "GET" and local is not None:
        return send(local)
    return reply


class _ErrorReply(msgspec.Struct):
    error: str


def locale_language(environ: Mapping[str, str]) -> str:
    """Supported language of the locale in the environment."""
    locale = next((environ[name] for name in ("LC_ALL", "LC_MESSAGES", "LANG") if environ.get(name)), "")
    return "zh" if locale.startswith("zh") else "en"


def _configured_token(config: Config) -> str | None:
    """Token of an admin in the configuration. Raise QueryError."""
    try:
        return config.daemon.read_token() or config.daemon.access.admin_token()
    except ValueError as error:
        raise QueryError(f"daemon.token_file: {error}") from None


def _local_token(config: Config) -> str | None:
    """Token in the state directory; None if this user cannot read it."""
    try:
        return read_local_token(config.daemon.state)
    except (OSError, ValueError):
        return None


def _missing_token(config: Config) -> str:
    """Why the daemon did not accept the token in the state directory, and what to change."""
    path = token_path(config.daemon.state)
    try:
        read_local_token(config.daemon.state)
        problem = f"the daemon on {config.daemon.listen} does not accept the token in {path}, which is of another one"
    except OSError as error:
        problem = f"cannot read the token of the daemon in {path} ({error.strerror})"
    except ValueError as error:
        problem = f"cannot use the token of the daemon in {path} ({error})"
    return f"{problem}; run this as the daemon's user or with sudo, or configure a token in daemon.token_file"


def _try_daemon(config: Config, path: str, form: type[T]) -> T | None:
    """Response of the daemon, or None without a valid one: another program may listen there."""
    try:
        reply = _request(config, "GET", path, None, TIMEOUT_SECONDS)
        return msgspec.json.decode(reply.body, type=form) if reply.status == http.HTTPStatus.OK else None
    except (PeerError, msgspec.MsgspecError, UnicodeError):
        return None


def _sentence(error: Exception) -> str:
    """Error message on one line, without a full stop: those of parsers have several lines."""
    return " ".join(str(error).split()).removesuffix(".")


@contextlib.contextmanager
def _direct_queries(config: Config) -> Iterator[ClusterQueries]:
    """Queries on a temporary cluster connection. Raise QueryError if Kubernetes is required and not available."""
    logs.setup("error")  # unavailable sources are part of the answer
    try:
        cluster = make_cluster(config)
    except KubeCredentialsError as error:
        raise QueryError(
            f"no daemon answers on {config.daemon.listen}, and {_sentence(error)}; name a kubeconfig in "
            "daemon.kubernetes.kubeconfig, or set daemon.kubernetes.enabled to auto"
        ) from None
    if cluster.kube:
        cluster.kube.start()
    cluster.poller.start()
    try:
        cluster.wait_settled(SETTLE_SECONDS)
        yield ClusterQueries(cluster, config.daemon.gpu_resource)
    finally:
        cluster.stop()
