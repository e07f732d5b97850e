"""The chart grants exactly the permissions that the code uses."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, cast

import pytest

from monitor.cleanup.execute.references_reader import ReferencesReader
from monitor.kube.client import ApiError, KubeApi
from monitor.kube.decode.pod import PodFieldFilter
from monitor.kube.informers import KubeInformers
from monitor.kube.node_writes import NodeWrites
from monitor.kube.pod_writes import PodWrites
from monitor.leader.lease_api import LeaseApi
from tests.deploy.helm import Object, render
from tests.deploy.values import EVERYTHING

Right = tuple[str, str, str]  # verb, group, resource
PATH = re.compile(
    r"/(?:api|apis/(?P<group>[^/]+))/v\w+(?:/namespaces/(?P<namespace>[^/]+))?"
    r"/(?P<plural>[a-z]+)(?:/(?P<name>[^/]+)(?:/(?P<below>[a-z]+))?)?"
)
VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}


class Recorder:
    """Replaces the HTTP session of the API client and records the permission each request needs."""

    def __init__(self) -> None:
        self.rights: set[Right] = set()

    def get(self, path: str, _query: Mapping[str, str], _accept: str, _seconds: float) -> bytes:
        if PATH.fullmatch(path) is None:  # API discovery is open to all authenticated users
            return b'{"versions": [{"version": "v1"}]}'
        found = self._note("GET", path)
        if found["name"]:
            raise ApiError(404, None, None)
        return b'{"metadata": {}, "items": []}'

    def send(self, method: str, path: str, *_rest: object) -> bytes:
        self._note(method, path)
        return b"{}"

    def _note(self, method: str, path: str) -> dict[str, str | None]:
        match = PATH.fullmatch(path)
        assert match, path
        found = match.groupdict()
        verb = VERBS.get(method) or ("get" if found["name"] else "list")
        resource = "/".join(part for part in (found["plural"], found["below"]) if part)
        self.rights.add((verb, found["group"] or "", resource))
        return found


@pytest.fixture
def recorder() -> Recorder:
    return Recorder()


@pytest.fixture
def api(recorder: Recorder) -> KubeApi:
    return cast("KubeApi", recorder)


def rights_of(objects: list[Object], kind: str, end: str) -> set[Right]:
    """Permissions of the role whose name ends in `end`."""
    (role,) = [each for each in objects if each["kind"] == kind and each["metadata"]["name"].endswith(end)]
    return {
        (verb, group, resource)
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


@pytest.fixture(scope="module")
def objects() -> list[Object]:
    return render(EVERYTHING)


def test_it_may_read_what_it_follows(objects: list[Object], api: KubeApi) -> None:
    followed = [resource for resource, _ in KubeInformers(api, PodFieldFilter())._watched(PodFieldFilter())]
    expected = {(verb, each.group, each.plural) for each in followed for verb in ("get", "list", "watch")}
    assert rights_of(objects, "ClusterRole", "-read") == expected


def test_to_release_it_may_do_what_people_ask_for(objects: list[Object], api: KubeApi, recorder: Recorder) -> None:
    pods = PodWrites(api)
    pods.look("ns", "pod")
    pods.evict("ns", "pod", "uid")
    pods.delete("ns", "pod", "uid")
    NodeWrites(api).cordon("node", cordoned=True)
    read = rights_of(objects, "ClusterRole", "-read")
    assert rights_of(objects, "ClusterRole", "-release") == recorder.rights - read


def test_to_clean_up_it_may_list_what_is_needed_and_delete_pods(
    objects: list[Object], api: KubeApi, recorder: Recorder
) -> None:
    assert ReferencesReader(api).references("node").unknown == ()
    assert ReferencesReader(api).volumes().unknown == ()
    PodWrites(api).evict("ns", "pod", "uid")
    PodWrites(api).delete("ns", "pod", "uid", force=True)
    given = rights_of(objects, "ClusterRole", "-cleanup")
    # Also grants the general read permissions, because the roles can be assigned separately.
    assert given | rights_of(objects, "ClusterRole", "-read") >= recorder.rights
    assert given <= recorder.rights


def test_of_leases_it_may_change_its_own(objects: list[Object], api: KubeApi, recorder: Recorder) -> None:
    lease = LeaseApi(api, "gpuwarden", "gpuwarden", 1.0)
    lease.get()
    lease.create({})
    lease.replace({})
    assert rights_of(objects, "Role", "-lease") == recorder.rights
    (role,) = [each for each in objects if each["kind"] == "Role"]
    named = [rule for rule in role["rules"] if rule["verbs"] != ["create"]]
    assert all(rule["resourceNames"] == ["gpuwarden"] for rule in named)


@pytest.mark.parametrize(
    ("rbac", "roles"),
    [
        ({}, {"read"}),
        ({"release": True}, {"read", "release"}),
        ({"cleanup": True}, {"read", "cleanup"}),
        ({"create": False, "release": True}, set()),
    ],
)
def test_each_role_is_switched_by_its_value(rbac: dict[str, Any], roles: set[str]) -> None:
    objects = render({"rbac": rbac})
    for kind in ("ClusterRole", "ClusterRoleBinding"):
        names = {each["metadata"]["name"].rpartition("-")[2] for each in objects if each["kind"] == kind}
        assert names == roles
    subjects = [each["subjects"] for each in objects if each["kind"] == "ClusterRoleBinding"]
    daemon = {"kind": "ServiceAccount", "name": "gpuwarden", "namespace": "gpuwarden"}
    assert all(subject == [daemon] for subject in subjects)  # never the agent
