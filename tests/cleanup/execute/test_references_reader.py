"""References of the cluster, read from an API server, for all kinds of objects."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from monitor.cleanup.execute.references_reader import ReferencesReader
from monitor.cleanup.plan.references import VolumeUse
from monitor.cleanup.plan.workload_templates import KINDS, claims_of, template_of
from monitor.kube.client import connect
from tests.cleanup.objects_server import Objects

POD = {"containers": [{"name": "c", "image": "lab/main:1"}], "initContainers": [{"name": "i", "image": "lab/init:1"}]}
TEMPLATES: list[tuple[str, str, dict[str, Any]]] = [
    ("a Deployment", "Deployment", {"template": {"spec": POD}}),
    ("a CronJob", "CronJob", {"jobTemplate": {"spec": {"template": {"spec": POD}}}}),
    ("a job of Volcano", "Job (Volcano)", {"tasks": [{"template": {"spec": POD}}]}),
    ("a PyTorchJob", "PyTorchJob", {"pytorchReplicaSpecs": {"Worker": {"template": {"spec": POD}}}}),
    ("a RayJob", "RayJob", {"rayClusterSpec": {"workerGroupSpecs": [{"template": {"spec": POD}}]}}),
    ("a Workflow", "Workflow", {"t": [{"container": {"image": "lab/main:1"}}, {"script": {"image": "lab/init:1"}}]}),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "spec"), [row[1:] for row in TEMPLATES], ids=[row[0] for row in TEMPLATES])
def test_images_of_a_template(kind: str, spec: dict[str, Any]) -> None:
    found = template_of(kind, {"metadata": {"name": "t", "namespace": "n"}, "spec": spec})
    assert found is not None
    assert set(found.images) == {"lab/main:1", "lab/init:1"}
    assert found.text == f"{kind} n/t"


def test_what_else_names_an_image() -> None:
    spec = {
        "volumes": [{"name": "model", "image": {"reference": "lab/model:1"}}],
        "ephemeralContainers": [{"image": "d:1"}],
    }
    found = template_of("Pod", {"metadata": {"name": "p"}, "spec": spec})
    assert found is not None
    assert found.images == ("lab/model:1", "d:1")


def test_volumes_are_found_below_lists_that_are_not_volumes() -> None:
    """A Workflow may name anything `volumes`."""
    real = [{"name": "a", "hostPath": {"path": "/mnt/a"}}]
    spec = {"parameters": {"volumes": ["text", {"spec": {"volumes": real}}]}}
    found = template_of("Workflow", {"metadata": {"name": "w"}, "spec": spec})
    assert found is not None
    assert [(volume.name, volume.path) for volume in found.volumes] == [("a", "/mnt/a")]


def test_claims_of_a_stateful_set_are_those_of_all_its_pods() -> None:
    spec = {"volumeClaimTemplates": [{"metadata": {"name": "data"}}, {"metadata": {}}]}
    found = template_of("StatefulSet", {"metadata": {"name": "db"}, "spec": spec})
    assert found is not None
    assert [volume.claim for volume in found.volumes] == ["data-db-*"]


@pytest.mark.parametrize(
    ("name", "replicas", "owned", "counts"),
    [("of the past", 0, True, False), ("at work", 1, True, True), ("of nobody", 0, False, True)],
)
def test_a_replica_set_of_the_past_needs_nothing(name: str, replicas: int, owned: bool, counts: bool) -> None:
    owners = {"ownerReferences": [{"kind": "Deployment", "name": "d"}]} if owned else {}
    raw = {"metadata": {"name": "r", **owners}, "spec": {"replicas": replicas, "template": {"spec": POD}}}
    assert (template_of("ReplicaSet", raw) is not None) is counts


def volume(name: str, **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": spec}


def claim(name: str, volume_name: str | None) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": "team"}, "spec": {"volumeName": volume_name} if volume_name else {}}


@pytest.mark.parametrize(
    ("name", "spec", "directory"),
    [
        ("NFS", {"nfs": {"server": "nas", "path": "/x"}}, VolumeUse("nfs", "/x", "nas")),
        ("a host's directory", {"hostPath": {"path": "/d"}}, VolumeUse("hostPath", "/d")),
        ("a local disk", {"local": {"path": "/l"}}, VolumeUse("local", "/l")),
        (
            "NFS by CSI",
            {"csi": {"volumeAttributes": {"server": "nas", "share": "/x/", "subdir": "pvc-1"}}},
            VolumeUse("csi", "/x/pvc-1", "nas"),
        ),
        ("a disk of a cloud", {"csi": {"volumeHandle": "vol-1"}}, None),
    ],
)
def test_where_a_claim_leads(name: str, spec: dict[str, Any], directory: VolumeUse | None) -> None:
    found = claims_of([claim("c", "v"), claim("pending", None)], [volume("v", **spec)])
    assert found.get(("team", "c")) == ((directory,) if directory else None)
    assert ("team", "pending") not in found


@pytest.fixture
def objects(tmp_path: Path) -> Any:
    with Objects() as server:
        server.kubeconfig_at = server.kubeconfig(tmp_path)
        yield server


def reader(objects: Objects) -> ReferencesReader:
    return ReferencesReader(connect(objects.kubeconfig_at))


def pod(name: str, node: str | None, phase: str = "Running", **spec: Any) -> dict[str, Any]:
    whole = {"containers": [{"name": "c", "image": f"lab/{name}:1"}]} | spec | ({"nodeName": node} if node else {})
    meta = {"name": name, "namespace": "team", "uid": f"u-{name}"}
    return {"metadata": meta, "spec": whole, "status": {"phase": phase}}


def test_pods_of_a_node_pending_ones_and_templates(objects: Objects) -> None:
    objects.put("/api/v1/pods", pod("here", "n1"), pod("there", "n2"), pod("waits", None, "Pending"))
    objects.put("/api/v1/pods", pod("over", "n1", "Succeeded"))
    objects.put("/api/v1/pods", pod("debugged", "n1", ephemeralContainers=[{"name": "d", "image": "lab/debug:1"}]))
    objects.put(
        "/apis/batch/v1/jobs", {"metadata": {"name": "j", "namespace": "team"}, "spec": {"template": {"spec": POD}}}
    )
    objects.group("batch.volcano.sh", "v1alpha1")
    vcjob = {
        "metadata": {"name": "v", "namespace": "team"},
        "spec": {"tasks": [{"template": {"spec": {"containers": [{"image": "lab/vc:1"}]}}}]},
    }
    objects.put("/apis/batch.volcano.sh/v1alpha1/jobs", vcjob)  # fmt: skip
    references = reader(objects).references("n1")
    assert references.unknown == ()
    assert {name.removeprefix("docker.io/lab/"): referrer for name, referrer in references.names.items()} == {
        "here:1": "Pod team/here", "waits:1": "Pod team/waits", "debugged:1": "Pod team/debugged",
        "debug:1": "Pod team/debugged", "main:1": "Job team/j", "init:1": "Job team/j", "vc:1": "Job (Volcano) team/v",
    }  # fmt: skip


def test_a_list_of_many_pages(objects: Objects) -> None:
    objects.put("/api/v1/pods", *(pod(f"p{number}", "n1") for number in range(1200)))
    assert len(reader(objects).references("n1").names) == 1200


@pytest.mark.parametrize(
    ("name", "path", "status", "unknown"),
    [
        ("pods may not be listed", "/api/v1/pods", 403, ("pods",)),
        ("jobs may not be listed", "/apis/batch/v1/jobs", 403, ("jobs.batch",)),
        ("the server is ill", "/apis/apps/v1/deployments", 500, ("deployments.apps",)),
        ("no CronJobs at all", "/apis/batch/v1/cronjobs", 404, ("cronjobs.batch",)),
        ("an add-on may not be listed", "/apis/batch.volcano.sh/v1alpha1/jobs", 403, ("jobs.batch.volcano.sh",)),
        ("an add-on without this kind", "/apis/batch.volcano.sh/v1alpha1/cronjobs", 404, ()),
    ],
)
def test_a_list_that_fails_leaves_it_unknown(
    objects: Objects, name: str, path: str, status: int, unknown: tuple[str, ...]
) -> None:
    objects.group("batch.volcano.sh", "v1alpha1")
    objects.failing[path] = status
    assert reader(objects).references("n1").unknown == unknown
    assert reader(objects).volumes().unknown == unknown


def test_an_old_server_has_cron_jobs_elsewhere(objects: Objects) -> None:
    objects.group("batch", "v1", "v1beta1")
    objects.failing["/apis/batch/v1/cronjobs"] = 404
    spec = {"jobTemplate": {"spec": {"template": {"spec": POD}}}}
    objects.put("/apis/batch/v1beta1/cronjobs", {"metadata": {"name": "c", "namespace": "team"}, "spec": spec})
    references = reader(objects).references("n1")
    assert (references.unknown, "docker.io/lab/main:1" in references.names) == ((), True)


def test_one_pod_that_cannot_be_understood_leaves_it_unknown(objects: Objects) -> None:
    objects.put("/api/v1/pods", {"metadata": {"name": "odd", "uid": "u"}, "spec": {"nodeName": "n1", "containers": 5}})
    assert reader(objects).references("n1").unknown == ("pods",)


def test_directories_of_pods_and_templates(objects: Objects) -> None:
    objects.put("/api/v1/persistentvolumes", volume("v", nfs={"server": "nas", "path": "/export/a"}))
    objects.put("/api/v1/persistentvolumes", volume("w", nfs={"server": "nas", "path": "/export/db-3"}))
    objects.put("/api/v1/persistentvolumes", volume("e", hostPath={"path": "/scratch/e"}))
    objects.put("/api/v1/persistentvolumeclaims", claim("data", "v"), claim("store-db-3", "w"), claim("eph-tmp", "e"))
    objects.put("/api/v1/pods", pod("a", "n1", volumes=[{"name": "d", "persistentVolumeClaim": {"claimName": "data"}}]))
    objects.put("/api/v1/pods", pod("b", "n1", volumes=[{"name": "h", "hostPath": {"path": "/data/b"}}]))
    objects.put("/api/v1/pods", pod("eph", "n1", volumes=[{"name": "tmp", "ephemeral": {"volumeClaimTemplate": {}}}]))
    objects.put("/api/v1/pods", pod("over", "n1", "Failed", volumes=[{"name": "h", "hostPath": {"path": "/old"}}]))
    job = {"template": {"spec": {"volumes": [{"name": "n", "nfs": {"server": "nas", "path": "/export/j"}}]}}}
    objects.put("/apis/batch/v1/jobs", {"metadata": {"name": "j", "namespace": "team"}, "spec": job})
    stateful = {"volumeClaimTemplates": [{"metadata": {"name": "store"}}]}
    objects.put("/apis/apps/v1/statefulsets", {"metadata": {"name": "db", "namespace": "team"}, "spec": stateful})
    found = reader(objects).volumes()
    assert found.unknown == ()
    assert {(use.referrer, use.server, use.path) for use in found.uses} == {
        ("Pod team/a", "nas", "/export/a"), ("Pod team/b", None, "/data/b"), ("Pod team/eph", None, "/scratch/e"),
        ("Job team/j", "nas", "/export/j"), ("StatefulSet team/db", "nas", "/export/db-3"),
    }  # fmt: skip


def test_every_kind_is_listed_once() -> None:
    assert len({kind.name for kind in KINDS}) == len(KINDS)
