"""Custom resource definitions of Volcano and Kueue."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from tests.lab.api import Api
from tests.lab.lab import Lab
from tests.support import wait_until

GPU = "nvidia.com/gpu"
EXTENSIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
VOLCANO = "scheduling.volcano.sh/v1beta1"
KUEUE = "kueue.x-k8s.io/v1beta1"
# Reduced to what the API server needs: (version, plural, kind, scope).
ADD_ONS = (
    (VOLCANO, "queues", "Queue", "Cluster"),
    (VOLCANO, "podgroups", "PodGroup", "Namespaced"),
    (KUEUE, "clusterqueues", "ClusterQueue", "Cluster"),
    (KUEUE, "localqueues", "LocalQueue", "Namespaced"),
    (KUEUE, "workloads", "Workload", "Namespaced"),
)


@contextmanager
def add_ons(lab: Lab) -> Iterator[None]:
    """Install the custom resource definitions of Volcano and Kueue temporarily."""
    api = Api(lab.kubeconfig)
    try:
        for version, plural, kind, scope in ADD_ONS:
            _install(api, version, plural, kind, scope)
        for version, plural, _, _ in ADD_ONS:
            path = f"/apis/{version}/{plural}"
            wait_until(partial(_is_served, api, path), 20, f"{path} is served")
        yield
    finally:
        for version, plural, _, _ in ADD_ONS:
            api.delete(f"{EXTENSIONS}/{plural}.{version.partition('/')[0]}")
        api.close()


def _is_served(api: Api, path: str) -> bool:
    return api.send("GET", path).ok


def _install(api: Api, version: str, plural: str, kind: str, scope: str) -> None:
    group, _, number = version.partition("/")
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    names = {"plural": plural, "singular": kind.lower(), "kind": kind, "listKind": f"{kind}List"}
    versions = [{"name": number, "served": True, "storage": True, "schema": schema}]
    spec = {"group": group, "scope": scope, "names": names, "versions": versions}
    body = {"metadata": {"name": f"{plural}.{group}"}, "spec": spec}
    # Left by an earlier run, or still being removed.
    wait_until(lambda: api.send("POST", EXTENSIONS, body).ok or _stays(api, plural, group), 20, f"{plural}.{group}")


def _stays(api: Api, plural: str, group: str) -> bool:
    answer = api.send("GET", f"{EXTENSIONS}/{plural}.{group}")
    return answer.ok and "deletionTimestamp" not in answer.json()["metadata"]
