"""One question from the command line: put to the daemon if one runs here, else answered from the cluster itself."""

from __future__ import annotations

import contextlib
import http.client
import json
from collections.abc import Iterator, Mapping
from urllib.parse import urlencode

import msgspec

from monitor import logs
from monitor.config import Config
from monitor.config_types import Listen
from monitor.facts.cluster import ClusterView
from monitor.questions import Questions, Why, make_cluster

TIMEOUT = 10.0
SETTLE = 15.0
EVERYWHERE = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104  # where it listens -> where it is asked


def view_now(config: Config) -> ClusterView:
    """Return the cluster as it is now."""
    body = _ask_daemon(config.daemon.listen, "/v1/view")
    if body is not None:
        return msgspec.json.decode(body, type=ClusterView)
    with _questions(config) as questions:
        return questions.view()


def why_now(config: Config, name: str, namespace: str | None, lang: str) -> Why:
    """Return why a pod or job is as it is."""
    query = {"name": name, "lang": lang} | ({"namespace": namespace} if namespace else {})
    body = _ask_daemon(config.daemon.listen, f"/v1/why?{urlencode(query)}")
    if body is not None:
        return msgspec.convert(json.loads(body), Why)
    with _questions(config) as questions:
        return questions.why(name, namespace, lang)


def locale_language(environ: Mapping[str, str]) -> str:
    """Given the environment, return the language of its locale, of those that we speak."""
    locale = next((environ[name] for name in ("LC_ALL", "LC_MESSAGES", "LANG") if environ.get(name)), "")
    return "zh" if locale.startswith("zh") else "en"


def _ask_daemon(listen: Listen, path: str) -> bytes | None:
    """Return the daemon's answer, or None if there is no daemon that has one."""
    connection = http.client.HTTPConnection(EVERYWHERE.get(listen.host, listen.host), listen.port, timeout=TIMEOUT)
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        body = response.read()
        return body if response.status == http.HTTPStatus.OK else None
    except (OSError, http.client.HTTPException):
        return None
    finally:
        connection.close()


@contextlib.contextmanager
def _questions(config: Config) -> Iterator[Questions]:
    """Follow the cluster for as long as it takes to answer."""
    logs.setup("error")  # what could not be seen is part of the answer
    cluster = make_cluster(config)
    if cluster.kube:
        cluster.kube.start()
    cluster.poller.start()
    try:
        cluster.wait_settled(SETTLE)
        yield Questions(cluster, config.daemon.gpu_resource)
    finally:
        cluster.stop()
