"""One question from the command line: put to the daemon if one runs here, else answered from the cluster itself."""

from __future__ import annotations

import contextlib
import http.client
from collections.abc import Iterator, Mapping
from typing import TypeVar
from urllib.parse import urlencode

import msgspec

from monitor.base import logs
from monitor.base.net import reached_at
from monitor.config.root import Config
from monitor.daemon.build import make_cluster
from monitor.facts.cluster import ClusterView
from monitor.kube.client import NoClusterError
from monitor.present.findings import LocalizedFinding
from monitor.queries.cluster import ClusterQueries, PodExplanation

TIMEOUT = 10.0
SETTLE = 15.0
T = TypeVar("T")


class AskError(Exception):
    """There is nobody to ask, or no answer; the message is one sentence that says what to change."""


class NoDaemonError(AskError):
    """No daemon answers here."""


def view_now(config: Config) -> ClusterView:
    """Return the cluster as it is now. Raise AskError."""
    view = _ask_daemon(config, "/v1/view", ClusterView)
    if view is not None:
        return view
    with _questions(config) as questions:
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
    with _questions(config) as questions:
        return questions.why(name, namespace, lang)


def call_daemon(
    config: Config, method: str, path: str, form: type[T], payload: object = None, timeout: float = TIMEOUT
) -> T:
    """Ask the daemon, or have it change something. Raise AskError in its words, NoDaemonError if there is none."""
    listen, headers = config.daemon.listen, _headers(config) | {"Content-Type": "application/json"}
    connection = http.client.HTTPConnection(reached_at(listen.host), listen.port, timeout=timeout)
    try:
        connection.request(method, path, None if payload is None else msgspec.json.encode(payload), headers)
        response = connection.getresponse()
        body = response.read()
        if response.status < http.HTTPStatus.MULTIPLE_CHOICES:
            return msgspec.json.decode(body, type=form)
        refusal = msgspec.json.decode(body, type=_Refusal).error
    except TimeoutError:
        raise AskError(f"the daemon on {listen} has not answered within {timeout:g} s") from None
    except (OSError, http.client.HTTPException, msgspec.MsgspecError, UnicodeError):
        raise NoDaemonError(
            f"no daemon answers on {listen}; alerts are its work: gpuwarden daemon (daemon.listen says where)"
        ) from None
    finally:
        connection.close()
    raise AskError(f"the daemon says: {refusal}")


class _Refusal(msgspec.Struct):
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
        raise AskError(f"daemon.token_file: {error}") from None
    return {"Authorization": f"Bearer {token}"} if token is not None else {}


def _ask_daemon(config: Config, path: str, form: type[T]) -> T | None:
    """Return the daemon's answer, or None if there is no daemon that has one: some other program may listen there."""
    listen, headers = config.daemon.listen, _headers(config)
    connection = http.client.HTTPConnection(reached_at(listen.host), listen.port, timeout=TIMEOUT)
    try:
        connection.request("GET", path, headers=headers)
        response = connection.getresponse()
        body = response.read()
        return msgspec.json.decode(body, type=form) if response.status == http.HTTPStatus.OK else None
    except (OSError, http.client.HTTPException, msgspec.MsgspecError, UnicodeError):
        return None
    finally:
        connection.close()


def _sentence(error: Exception) -> str:
    """What a parser has to say may have many lines and its own full stop."""
    return " ".join(str(error).split()).removesuffix(".")


@contextlib.contextmanager
def _questions(config: Config) -> Iterator[ClusterQueries]:
    """Follow the cluster for as long as it takes to answer. Raise AskError if there is none and there has to be one."""
    logs.setup("error")  # what could not be seen is part of the answer
    try:
        cluster = make_cluster(config)
    except NoClusterError as error:
        raise AskError(
            f"no daemon answers on {config.daemon.listen}, and {_sentence(error)}; name a kubeconfig in "
            "daemon.kubernetes.kubeconfig, or set daemon.kubernetes.enabled to auto"
        ) from None
    if cluster.kube:
        cluster.kube.start()
    cluster.poller.start()
    try:
        cluster.wait_settled(SETTLE)
        yield ClusterQueries(cluster, config.daemon.gpu_resource)
    finally:
        cluster.stop()
