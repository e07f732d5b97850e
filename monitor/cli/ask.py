"""Queries of the command line: answered by the daemon if one runs here, else by the cluster itself."""

from __future__ import annotations

import contextlib
import http
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeVar
from urllib.parse import urlencode

import msgspec

from monitor.access.local_token import read_local_token, token_path
from monitor.base import logs
from monitor.base.msgspec_types import warm_up_msgspec
from monitor.base.net import connect_host
from monitor.base.peer_http import PeerClient, PeerError, PeerTimeoutError
from monitor.base.peer_wire import PeerReply
from monitor.base.threads import with_deadline
from monitor.config.root import Config
from monitor.config.types import Listen
from monitor.daemon.build import make_cluster
from monitor.explain.fits.model import FitsVerdict
from monitor.explain.not_created import PODS_UNSEEN
from monitor.facts.cluster import ClusterView
from monitor.kube.client import ApiConnectionError, ApiError, KubeApi, KubeCredentialsError
from monitor.present.findings import LocalizedFinding
from monitor.queries.cluster import ClusterQueries, PodExplanation, pods_unseen
from monitor.queries.fits import TOLERATE, FitsAnswer, parse_request
from monitor.queries.search import search_why

TIMEOUT_SECONDS = 10.0
REACH_SECONDS = 2.0  # within which a daemon or an API server that works says anything at all
SETTLE_SECONDS = 15.0
HEALTH_PATH = "/healthz"
MAX_BODY_BYTES = 512 * 1024 * 1024
_CLIENT_PREFIX = re.compile(r"^\w+: (?:\w+\(.*?\): )?")  # class and object of an error of the HTTP library
T = TypeVar("T")


class QueryError(Exception):
    """The query failed; the message is one sentence that says what to change."""


class UnreachableError(QueryError):
    """The question could not be asked: no daemon or no API server answers."""


class NoDaemonError(UnreachableError):
    """No daemon answers here."""


def view_now(config: Config) -> ClusterView:
    """Current view of the cluster. Raise QueryError."""
    view = try_daemon(config, "/v1/view", ClusterView)
    if view is not None:
        return view
    with direct_queries(config) as queries:
        return something_seen(config, queries.view())


def something_seen(config: Config, view: ClusterView) -> ClusterView:
    """The view, if any source of it answers. Raise UnreachableError otherwise."""
    if any(source.ok for source in view.sources) or any(node.heard_at is not None for node in view.nodes):
        return view
    reasons = "; ".join(f"{source.name}: {source.why}" for source in view.sources)
    raise UnreachableError(f"no daemon answers on {config.daemon.listen}, and there is nothing else to ask ({reasons})")


def findings_now(config: Config, lang: str) -> tuple[LocalizedFinding, ...] | None:
    """Current findings. None without a daemon: most rules need continuous evaluation."""
    return try_daemon(config, f"/v1/findings?{urlencode({'lang': lang})}", tuple[LocalizedFinding, ...])


def why_now(config: Config, name: str, namespace: str | None, lang: str) -> PodExplanation:
    """Explanation of the state of a pod, a job or the pods of a user. Raise QueryError."""
    query = {"name": name, "lang": lang} | ({"namespace": namespace} if namespace else {})
    explanation = try_daemon(config, f"/v1/why?{urlencode(query)}", PodExplanation)
    if explanation is None:
        with direct_queries(config, pods=True) as queries:
            explanation = search_why(queries, name, namespace, lang)
    if explanation.cause == PODS_UNSEEN:
        raise UnreachableError(explanation.lines[1].rstrip(".。"))
    return explanation


def fits_now(config: Config, fields: Mapping[str, str], tolerations: Sequence[str], lang: str) -> FitsAnswer:
    """Whether a job would fit, by words that are valid. Raise QueryError."""
    query = [*fields.items(), *((TOLERATE, text) for text in tolerations), ("lang", lang)]
    answer = try_daemon(config, f"/v1/fits?{urlencode(query)}", FitsAnswer)
    if answer is None:
        with direct_queries(config, pods=True) as queries:
            answer = queries.fits(parse_request(fields, tolerations), lang)
    if answer.verdict == FitsVerdict.UNSEEN:
        raise UnreachableError(answer.lines[0].rstrip(".。"))
    return answer


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
        raise UnreachableError(f"the daemon on {config.daemon.listen} has not answered within {timeout:g} s") from None
    except (PeerError, msgspec.MsgspecError, UnicodeError):
        raise NoDaemonError(
            f"no daemon answers on {config.daemon.listen}; start one with gpuwarden daemon, or correct daemon.listen"
        ) from None
    raise QueryError(f"the daemon says: {message}")


def _request(config: Config, method: str, path: str, body: bytes | None, timeout: float) -> PeerReply:
    """Reply of the daemon. Changes are sent with a token, queries with a local one only if the daemon requires it."""
    target = _daemon_address(config)
    _check_responds(config, target)
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


def _daemon_address(config: Config) -> str:
    listen = config.daemon.listen
    return str(Listen(host=connect_host(listen.host), port=listen.port))


def _check_responds(config: Config, target: str) -> None:
    """Raise UnreachableError if something listens there but says nothing, PeerError if nothing listens.

    Queries may take long; that the daemon is alive shows at once, from an answer that needs no worker thread.
    """
    try:
        PeerClient(REACH_SECONDS, MAX_BODY_BYTES).request(target, "GET", HEALTH_PATH, None, {})
    except PeerTimeoutError:
        raise UnreachableError(
            f"the daemon on {config.daemon.listen} accepts connections but has not responded within "
            f"{REACH_SECONDS:g} s; see its log, and restart it"
        ) from None


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


def try_daemon(config: Config, path: str, form: type[T]) -> T | None:
    """Response of the daemon, or None without a valid one: another program may listen there."""
    try:
        reply = _request(config, "GET", path, None, TIMEOUT_SECONDS)
        return msgspec.json.decode(reply.body, type=form) if reply.status == http.HTTPStatus.OK else None
    except (PeerError, msgspec.MsgspecError, UnicodeError):
        return None


def _check_api_server(api: KubeApi, no_daemon: str) -> None:
    """Raise UnreachableError if the API server does not answer, or not to these credentials."""
    try:
        with_deadline(REACH_SECONDS, lambda _: api.get("/version", {}, "application/json", REACH_SECONDS))
    except ApiError as error:
        if error.status == http.HTTPStatus.UNAUTHORIZED:
            raise UnreachableError(f"{no_daemon} the API server rejects the credentials: {_sentence(error)}") from None
    except (ApiConnectionError, TimeoutError) as error:
        reason = _CLIENT_PREFIX.sub("", _sentence(error))
        raise UnreachableError(f"{no_daemon} the API server {api.host} does not respond: {reason}") from None


def _sentence(error: Exception | str) -> str:
    """Error message on one line, without a full stop: those of parsers have several lines."""
    return " ".join(str(error).split()).removesuffix(".")


@contextlib.contextmanager
def direct_queries(config: Config, *, pods: bool = False) -> Iterator[ClusterQueries]:
    """Queries on a temporary cluster connection. Raise UnreachableError if the API server does not answer.

    Without an API server, agents alone can show nodes, but not the pods.
    """
    logs.setup("critical")  # unavailable sources are part of the answer
    warm_up_msgspec()
    no_daemon = f"no daemon answers on {config.daemon.listen}, and"
    try:
        cluster = make_cluster(config)
    except KubeCredentialsError as error:
        raise UnreachableError(
            f"{no_daemon} {_sentence(error)}; name a kubeconfig in daemon.kubernetes.kubeconfig, or set "
            "daemon.kubernetes.enabled to auto"
        ) from None
    if cluster.api is not None:
        _check_api_server(cluster.api, no_daemon)
    elif pods:
        reason = pods_unseen(cluster.refresh()) or "no API server"
        raise UnreachableError(f"{no_daemon} there is no API server to ask: {_sentence(reason)}")
    cluster.start()
    try:
        cluster.wait_settled(SETTLE_SECONDS)
        yield ClusterQueries(cluster, config.daemon.gpu_resource)
    finally:
        cluster.stop()
