"""One question from the command line: put to the daemon if one runs here, else answered from the cluster itself."""

from __future__ import annotations

import contextlib
import http
from collections.abc import Iterator, Mapping
from typing import TypeVar
from urllib.parse import urlencode

import msgspec

from monitor.base import logs
from monitor.base.net import connect_host
from monitor.base.peer_http import PeerClient, PeerError, PeerReply, PeerTimeoutError
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
    """There is nobody to ask, or no answer; the message is one sentence that says what to change."""


class NoDaemonError(QueryError):
    """No daemon answers here."""


def view_now(config: Config) -> ClusterView:
    """Return the cluster as it is now. Raise AskError."""
    view = _ask_daemon(config, "/v1/view", ClusterView)
    if view is not None:
        return view
    with _direct_queries(config) as questions:
        return questions.view()


def findings_now(config: Config, lang: str) -> tuple[LocalizedFinding, ...] | None:
    """Return what is wrong, in words. None without a daemon: most of what is wrong shows only to one who watches."""
    return _ask_daemon(config, f"/v1/findings?{urlencode({'lang': lang})}", tuple[LocalizedFinding, ...])


def why_now(config: Config, name: str, namespace: str | None, lang: str) -> PodExplanation:
    """Return why a pod or job is as it is. Raise AskError."""
    query = {"name": name, "lang": lang} | ({"namespace": namespace} if namespace else {})
    why = _ask_daemon(config, f"/v1/why?{urlencode(query)}", PodExplanation)
    if why is not None:
        return why
    with _direct_queries(config) as questions:
        return questions.why(name, namespace, lang)


def call_daemon(
    config: Config, method: str, path: str, form: type[T], payload: object = None, timeout: float = TIMEOUT_SECONDS
) -> T:
    """Send a request to the daemon, and return its answer. Raise AskError in its words, NoDaemonError if none runs."""
    body = None if payload is None else msgspec.json.encode(payload)
    try:
        reply = _request(config, method, path, body, timeout)
        if reply.status < http.HTTPStatus.MULTIPLE_CHOICES:
            return msgspec.json.decode(reply.body, type=form)
        refusal = msgspec.json.decode(reply.body, type=_ErrorReply).error
    except PeerTimeoutError:
        raise QueryError(f"the daemon on {config.daemon.listen} has not answered within {timeout:g} s") from None
    except (PeerError, msgspec.MsgspecError, UnicodeError):
        raise NoDaemonError(
            f"no daemon answers on {config.daemon.listen}; alerts are its work: gpuwarden daemon "
            "(daemon.listen says where)"
        ) from None
    raise QueryError(f"the daemon says: {refusal}")


def _request(config: Config, method: str, path: str, body: bytes | None, timeout: float) -> PeerReply:
    listen = config.daemon.listen
    headers = _headers(config) | {"Content-Type": "application/json"}
    target = str(Listen(host=connect_host(listen.host), port=listen.port))
    return PeerClient(timeout, MAX_BODY_BYTES).request(target, method, path, body, headers)


class _ErrorReply(msgspec.Struct):
    error: str


def locale_language(environ: Mapping[str, str]) -> str:
    """Given the environment, return the language of its locale, of those that we speak."""
    locale = next((environ[name] for name in ("LC_ALL", "LC_MESSAGES", "LANG") if environ.get(name)), "")
    return "zh" if locale.startswith("zh") else "en"


def _headers(config: Config) -> dict[str, str]:
    """Return the header that shows who asks, where a token is configured. Raise AskError."""
    try:
        token = config.daemon.read_token() or config.daemon.access.own_token()
    except ValueError as error:
        raise QueryError(f"daemon.token_file: {error}") from None
    return {"Authorization": f"Bearer {token}"} if token is not None else {}


def _ask_daemon(config: Config, path: str, form: type[T]) -> T | None:
    """The daemon's answer, or None if no daemon has one: some other program may listen there."""
    try:
        reply = _request(config, "GET", path, None, TIMEOUT_SECONDS)
        return msgspec.json.decode(reply.body, type=form) if reply.status == http.HTTPStatus.OK else None
    except (PeerError, msgspec.MsgspecError, UnicodeError):
        return None


def _sentence(error: Exception) -> str:
    """What a parser has to say may have many lines and its own full stop."""
    return " ".join(str(error).split()).removesuffix(".")


@contextlib.contextmanager
def _direct_queries(config: Config) -> Iterator[ClusterQueries]:
    """Follow the cluster for as long as it takes to answer. Raise AskError if there is none and there has to be one."""
    logs.setup("error")  # what could not be seen is part of the answer
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
