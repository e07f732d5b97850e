"""Facts from CRI messages."""

from __future__ import annotations

from typing import Any

import pytest

from monitor.agent.runtime import cri_facts
from monitor.agent.runtime.proto import cri_pb2 as pb

POD = pb.PodSandbox(id="s1", metadata=pb.PodSandboxMetadata(name="train-0", uid="u1", namespace="lab"))


def filesystem(used: int, mountpoint: str = "/r/snapshots", at: int = 1) -> pb.FilesystemUsage:
    return pb.FilesystemUsage(
        timestamp=at,
        fs_id=pb.FilesystemIdentifier(mountpoint=mountpoint),
        used_bytes=pb.UInt64Value(value=used),
    )


@pytest.mark.parametrize(
    ("name", "given", "expect"),
    [
        ("created", {"state": pb.CONTAINER_CREATED}, {"state": "created"}),
        ("running", {"state": pb.CONTAINER_RUNNING}, {"state": "running"}),
        ("exited", {"state": pb.CONTAINER_EXITED}, {"state": "exited"}),
        ("unknown", {"state": pb.CONTAINER_UNKNOWN}, {"state": "unknown"}),
        ("a state of the future", {"state": 9}, {"state": "unknown"}),
        ("nothing else", {}, {"name": None, "image": None, "image_id": None, "created_at": None}),
        ("image by reference", {"image_ref": "sha256:1"}, {"image_id": "sha256:1"}),
        (
            "image by id (Kubernetes 1.29)",
            {"image_ref": "x@sha256:9", "image_id": "sha256:1"},
            {"image_id": "sha256:1"},
        ),
        ("when", {"created_at": 1_500_000_000_500_000_000}, {"created_at": 1500000000.5}),
    ],
)
def test_container_as_listed(name: str, given: dict[str, Any], expect: dict[str, Any]) -> None:
    fact = cri_facts.container_fact("containerd", cri_facts.PodContainer(pb.Container(id="c1", **given), POD))
    assert {key: getattr(fact, key) for key in expect} == expect
    assert (fact.id, fact.pod_name, fact.pid, fact.log_path) == ("c1", "train-0", None, None)


def test_container_without_its_pod() -> None:
    fact = cri_facts.container_fact("containerd", cri_facts.PodContainer(pb.Container(id="c1"), None))
    assert (fact.pod_name, fact.pod_uid, fact.namespace) == (None, None, None)


@pytest.mark.parametrize(
    ("name", "info", "pid"),
    [
        ("containerd", {"info": '{"sandboxID":"s1","pid":77,"removing":false}'}, 77),
        ("after its end", {"info": '{"pid":0}'}, None),
        ("nothing", {}, None),
        ("empty", {"info": ""}, None),
        ("no JSON", {"info": "pid: 77"}, None),
        ("an odd pid", {"info": '{"pid":"77"}'}, None),
    ],
)
def test_the_pid_is_in_what_no_interface_promises(name: str, info: dict[str, str], pid: int | None) -> None:
    reply = pb.ContainerStatusResponse(status=pb.ContainerStatus(log_path="/l/0.log"), info=info)
    fact = cri_facts.container_fact("containerd", cri_facts.PodContainer(pb.Container(id="c1"), POD), reply)
    assert (fact.pid, fact.log_path) == (pid, "/l/0.log")


@pytest.mark.parametrize(("state", "expect"), [(pb.SANDBOX_READY, "running"), (pb.SANDBOX_NOTREADY, "exited")])
def test_sandbox(state: int, expect: str) -> None:
    sandbox = pb.PodSandbox(id="s1", metadata=POD.metadata, state=state)
    reply = pb.PodSandboxStatusResponse(info={"info": '{"pid":5,"image":"pause:3.6"}'})
    fact = cri_facts.sandbox_fact("cri-o", sandbox, reply)
    assert (fact.sandbox, fact.state, fact.pid, fact.image) == (True, expect, 5, "pause:3.6")
    assert (fact.runtime, fact.pod_uid) == ("cri-o", "u1")


@pytest.mark.parametrize(
    ("name", "container", "used"),
    [
        ("by id", {"image_id": "sha256:1"}, True),
        ("by reference that is an id (containerd)", {"image_ref": "sha256:1"}, True),
        ("by digest (CRI-O)", {"image_ref": "r/x@sha256:9"}, True),
        ("by tag", {"image": pb.ImageSpec(image="r/x:1")}, True),
        ("another one", {"image_ref": "sha256:2"}, False),
        ("none", {}, False),
    ],
)
def test_who_uses_an_image(name: str, container: dict[str, Any], used: bool) -> None:
    image = pb.Image(id="sha256:1", repo_tags=["r/x:1"], repo_digests=["r/x@sha256:9"])
    assert cri_facts.containers_by_image([image], [pb.Container(id="c1", **container)]) == (
        {"sha256:1": ["c1"]} if used else {}
    )


@pytest.mark.parametrize(
    ("name", "tags", "said", "sandbox_image", "pinned"),
    [
        ("an ordinary one", ["docker.io/library/x:1"], False, "registry.k8s.io/pause:3.6", False),
        ("the runtime says so (containerd 1.7)", ["registry.k8s.io/pause:3.6"], True, None, True),
        ("the runtime is too old to say so", ["registry.k8s.io/pause:3.6"], False, "registry.k8s.io/pause:3.6", True),
        ("by its short name", ["docker.io/library/pause:1"], False, "pause:1", True),
        ("by its shorter name", ["docker.io/lab/pause:1"], False, "lab/pause:1", True),
        ("another one that ends so", ["docker.io/mine/lab/pause:1"], False, "lab/pause:1", False),
    ],
)
def test_the_image_of_sandboxes_is_pinned(
    name: str, tags: list[str], said: bool, sandbox_image: str | None, pinned: bool
) -> None:
    image = pb.Image(id="sha256:1", repo_tags=tags, pinned=said)
    assert cri_facts.image_fact(image, (), sandbox_image).pinned is pinned


@pytest.mark.parametrize(
    ("name", "tags", "digests", "local"),
    [
        ("pulled", ["docker.io/library/x:1"], ["docker.io/library/x@sha256:1"], False),
        ("imported", ["docker.io/library/x:1"], [], True),
        ("replaced by a newer one", [], ["docker.io/library/x@sha256:1"], False),
        ("without any name", [], [], False),
    ],
)
def test_which_images_no_registry_is_known_to_have(name: str, tags: list[str], digests: list[str], local: bool) -> None:
    image = pb.Image(id="sha256:1", repo_tags=tags, repo_digests=digests)
    assert cri_facts.image_fact(image, (), None).local is local


@pytest.mark.parametrize(
    ("name", "info", "mountpoint", "expect"),
    [
        ("containerd", {"config": '{"containerdRootDir":"/r","sandboxImage":"p:1"}'}, "/r/snap", ("/r", "p:1")),
        (
            "CRI-O",
            {"config": "[crio]"},
            "/var/lib/containers/storage/overlay-images",
            ("/var/lib/containers/storage", None),
        ),
        ("nothing", {}, "", (None, None)),
    ],
)
def test_configuration(name: str, info: dict[str, str], mountpoint: str, expect: tuple[str | None, str | None]) -> None:
    assert cri_facts.root_and_sandbox_image(info, [filesystem(1, mountpoint)]) == expect


def test_no_filesystem_no_root() -> None:
    assert cri_facts.root_and_sandbox_image({}, []) == (None, None)


@pytest.mark.parametrize(
    ("name", "given", "expect"),
    [
        ("measured", [filesystem(5)], 5),
        ("two places", [filesystem(5), filesystem(6)], 11),
        ("not measured yet", [filesystem(0)], None),
        ("nowhere", [], None),
    ],
)
def test_layers(name: str, given: list[pb.FilesystemUsage], expect: int | None) -> None:
    assert cri_facts.layers_bytes(given) == expect


@pytest.mark.parametrize(
    ("name", "layers", "writable", "total"),
    [
        ("measured", {"a": filesystem(5), "b": filesystem(0)}, {"a": 5, "b": 0}, 5),
        ("one not measured yet", {"a": filesystem(5), "b": filesystem(0, at=0)}, {"a": 5}, 5),
        ("none measured yet", {"a": filesystem(0, at=0)}, {}, None),
        ("no container", {}, {}, 0),
    ],
)
def test_usage(name: str, layers: dict[str, pb.FilesystemUsage], writable: dict[str, int], total: int | None) -> None:
    stats = [
        pb.ContainerStats(attributes=pb.ContainerAttributes(id=one), writable_layer=layer)
        for one, layer in layers.items()
    ]
    fact = cri_facts.usage_fact("containerd", stats, 9)
    assert (fact.writable, fact.writable_bytes, fact.layers_bytes) == (writable, total, 9)


@pytest.mark.parametrize(
    ("name", "given", "expect"),
    [
        ("nothing", {}, None),
        ("a label", {"labels": {"userName": "li.lei"}}, "li.lei"),
        ("an annotation", {"annotations": {"hub.jupyter.org/username": "han"}}, "han"),
        ("the platform's word before a general one", {"labels": {"user": "x", "userName": "li.lei"}}, "li.lei"),
    ],
)
def test_the_user_of_a_pod(name: str, given: dict[str, Any], expect: str | None) -> None:
    assert cri_facts.sandbox_fact("containerd", pb.PodSandbox(id="s", **given)).user == expect, name
