"""Strings that recur on many nodes are kept once."""

from __future__ import annotations

import msgspec

from monitor.cluster.agents.snapshot import SnapshotFollower
from monitor.facts.node import NodeSnapshot
from monitor.facts.storage import ImageCacheFact, ImageFact
from tests.support.snapshots import full_snapshot


def _read(body: bytes) -> NodeSnapshot:
    return SnapshotFollower().read(lambda _version: body)


def test_nodes_share_the_names_of_images_namespaces_and_collectors() -> None:
    body = msgspec.json.encode(full_snapshot())
    one, other = _read(body), _read(body)
    assert one == other
    assert one.images
    assert one.containers
    assert other.images
    assert other.containers
    (image, same_image), (container, same_container) = (
        (one.images[0].images[0], other.images[0].images[0]),
        (one.containers[0], other.containers[0]),
    )
    assert image.id is same_image.id
    assert image.names is same_image.names
    assert image.size_bytes is same_image.size_bytes
    assert all(map(_is, image.names + image.digests, same_image.names + same_image.digests))
    assert container.namespace is same_container.namespace
    assert container.image is same_container.image
    assert one.collectors[0].name is other.collectors[0].name


def _is(one: object, other: object) -> bool:
    return one is other


def test_equal_numbers_of_different_types_are_not_the_same_value() -> None:
    images = (ImageFact(id="a", size_bytes=1_700_000_000), ImageFact(id="b", created_at=1_700_000_000.0))
    snapshot = msgspec.structs.replace(full_snapshot(), images=(ImageCacheFact(runtime="docker", images=images),))
    read = _read(msgspec.json.encode(snapshot)).images
    assert read is not None
    assert type(read[0].images[1].created_at) is float


def test_sharing_changes_no_content() -> None:
    snapshot = full_snapshot()
    assert _read(msgspec.json.encode(snapshot)) == snapshot


def test_parts_of_a_snapshot_share_the_ids_of_containers_pods_and_gpus() -> None:
    one, other = (_read(msgspec.json.encode(full_snapshot())) for _ in range(2))
    for part, fields in {
        "containers": ("id", "pod_uid"),
        "container_usage": ("container_id",),
        "disk": ("mount", "device", "fstype"),
        "gpu_processes": ("gpu_uuid", "kind", "container_id", "pod_uid"),
        "logs": ("container_id",),
        "mounts": ("path",),
        "pod_devices": ("resource", "gpu_uuid", "pod_uid"),
        "probes": ("target",),
        "shm": ("container_id",),
    }.items():
        facts, same_facts = getattr(one, part), getattr(other, part)
        assert facts, part
        for field in fields:
            assert all(getattr(a, field) is getattr(b, field) for a, b in zip(facts, same_facts, strict=True)), part
    assert one.gpu is not None
    assert other.gpu is not None
    assert one.gpu.gpus[0].uuid is other.gpu.gpus[0].uuid
    assert one.runtime_usage
    assert other.runtime_usage
    assert all(map(_is, one.runtime_usage[0].writable, other.runtime_usage[0].writable))
