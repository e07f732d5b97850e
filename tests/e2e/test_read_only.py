"""The product in any cluster: `doctor`, `status` and `why` with a running daemon write nothing.

All requests pass through a proxy that refuses writes. In the lab, the audit log of the API server shows the same.
"""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from kubernetes import client, config

from tests.e2e.read_only_proxy import ProxiedRequests, read_only_proxy
from tests.lab.errors import LabError
from tests.lab.lab import Lab
from tests.support import free_port, wait_until
from tests.support.command import STOP_LIMIT, command, get, quiet_environment, run, running

FOLLOWED = {"pods", "nodes", "events", "namespaces"}
REVIEW_GROUPS = ("authorization.k8s.io", "authentication.k8s.io")  # their objects are never stored
READ_VERBS = ("get", "list", "watch")


@dataclass(frozen=True)
class ReadOnlyRun:
    """A daemon behind the proxy, the environment of its command line, and the requests so far."""

    page: str
    environ: dict[str, str]
    requests: ProxiedRequests


def lab_of(kubeconfig: Path) -> Lab | None:
    """The lab, if this is the kubeconfig of one."""
    try:
        return Lab.attach(kubeconfig.resolve().parent)
    except LabError:
        return None


@pytest.fixture(scope="module")
def product(kubeconfig: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ReadOnlyRun]:
    """A daemon that follows the cluster; at the end nothing has been written."""
    folder = tmp_path_factory.mktemp("read-only")
    lab = lab_of(kubeconfig)
    before = len(lab.audited()) if lab is not None else 0
    credentials = lab.product_kubeconfig if lab is not None else kubeconfig
    with read_only_proxy(credentials, folder) as (proxied, requests):
        yield from _daemon(proxied, folder, requests)
        assert requests.writes == []
    if lab is not None:
        passed_on = len(requests.reads) + len(requests.reviews)
        wait_until(lambda: _count(lab.audited()[before:]) >= passed_on, 60, "all requests are in the audit log")
        assert_only_read(lab.audited()[before:])
        lab.close()


def _daemon(kubeconfig: Path, folder: Path, requests: ProxiedRequests) -> Iterator[ReadOnlyRun]:
    port = free_port()
    environ = quiet_environment(
        folder / "state",
        DAEMON__LISTEN=f"127.0.0.1:{port}",
        DAEMON__KUBERNETES__ENABLED="yes",
        DAEMON__KUBERNETES__KUBECONFIG=str(kubeconfig),
        DAEMON__CYCLE="500ms",
    )
    page = f"http://127.0.0.1:{port}"
    with running(command("daemon"), environ, stdout=subprocess.DEVNULL) as daemon:
        wait_until(lambda: _sources(page) >= FOLLOWED, 60, "the daemon follows the cluster")
        yield ReadOnlyRun(page, environ, requests)
        daemon.send_signal(signal.SIGTERM)
        assert daemon.wait(STOP_LIMIT) == 0


def _sources(page: str) -> set[str]:
    try:
        view = json.loads(get(f"{page}/v1/view")[2])
    except OSError:  # not listening yet
        return set()
    return {source["name"] for source in view.get("sources", ()) if source["ok"]}


def _count(events: list[dict[str, Any]]) -> int:
    """Number of requests; a watch has several events."""
    return len({event["auditID"] for event in events})


def assert_only_read(events: list[dict[str, Any]]) -> None:
    """The audit log holds requests of the product, and none of them writes."""
    writes = [
        f"{event['verb']} {event['requestURI']}"
        for event in events
        if event["verb"] not in READ_VERBS and (event.get("objectRef") or {}).get("apiGroup") not in REVIEW_GROUPS
    ]
    assert writes == []
    assert {event["verb"] for event in events} >= {"list", "watch"}, "or it proves nothing"


def nodes_and_pods(kubeconfig: Path) -> tuple[list[str], list[tuple[str, str]]]:
    """Names of the nodes, and namespaces and names of some pods, read without the product."""
    api: Any = config.new_client_from_config(str(kubeconfig))  # type: ignore[no-untyped-call]  # theirs
    with api:
        core: Any = client.CoreV1Api(api)
        nodes = core.list_node(_request_timeout=60).items
        pods = core.list_pod_for_all_namespaces(limit=3, _request_timeout=60).items
    return [node.metadata.name for node in nodes], [(pod.metadata.namespace, pod.metadata.name) for pod in pods]


@pytest.mark.read_only
def test_doctor_reads_the_cluster(product: ReadOnlyRun) -> None:
    done = run("doctor", "--json", "--lang", "en", environ=product.environ)
    rows = {row["check"]: row for row in json.loads(done.stdout)}
    assert rows["kubernetes.api"]["status"] in ("ok", "warning"), rows["kubernetes.api"]
    assert product.requests.reviews, "it asks which rights it has"
    assert product.requests.writes == []


@pytest.mark.read_only
def test_status_shows_the_nodes(product: ReadOnlyRun, kubeconfig: Path) -> None:
    nodes, _ = nodes_and_pods(kubeconfig)
    done = run("status", "--json", environ=product.environ)
    assert done.returncode in (0, 1), done.stderr
    assert {node["name"] for node in json.loads(done.stdout)["nodes"]} >= set(nodes)
    assert product.requests.writes == []


@pytest.mark.read_only
def test_why_explains_pods_and_says_if_there_is_none(product: ReadOnlyRun, kubeconfig: Path) -> None:
    for namespace, name in nodes_and_pods(kubeconfig)[1]:
        done = run("why", "-n", namespace, name, environ=product.environ)
        assert done.returncode in (0, 1), done.stderr
        assert name in done.stdout
    missing = run("why", "there-is-no-such-pod", "--lang", "en", environ=product.environ)
    assert (missing.returncode, "there-is-no-such-pod" in missing.stdout + missing.stderr) == (1, True)
    assert product.requests.writes == []


@pytest.mark.read_only
def test_the_commands_read_the_cluster_themselves_without_a_daemon(product: ReadOnlyRun) -> None:
    before = len(product.requests.reads)
    alone = product.environ | {"GPUWARDEN_DAEMON__LISTEN": f"127.0.0.1:{free_port()}"}
    for arguments in (("status", "--json"), ("why", "there-is-no-such-pod")):
        assert run(*arguments, environ=alone).returncode in (0, 1)
    assert len(product.requests.reads) > before
    assert product.requests.writes == []


def test_a_write_would_be_noticed(product: ReadOnlyRun, kubeconfig: Path, tmp_path: Path) -> None:
    """The proxy refuses what writes, and the audit log of the lab holds it if it gets there."""
    with read_only_proxy(kubeconfig, tmp_path) as (proxied, requests):
        api: Any = config.new_client_from_config(str(proxied))  # type: ignore[no-untyped-call]  # theirs
        with api, pytest.raises(client.ApiException) as refused:
            client.CoreV1Api(api).create_namespace(client.V1Namespace(), _request_timeout=60)
    assert (refused.value.status, requests.writes) == (403, ["POST /api/v1/namespaces"])
    with pytest.raises(AssertionError, match="create /api/v1/namespaces"):
        assert_only_read([{"verb": "create", "requestURI": "/api/v1/namespaces", "objectRef": {"apiGroup": ""}}])
