"""References of pods and templates to images and directories."""

from __future__ import annotations

from typing import Any

from monitor.base.text import MAX_TEXT_CHARS, shorten_name
from monitor.cleanup.plan.references import ClusterReferences, Template, VolumeUse, image_references, volume_uses
from monitor.facts.image_names import reference_keys
from monitor.facts.kube import ContainerStatusFact, PodContainerFact, PodFact, PodVolumeFact

A, B = "a" * 64, "b" * 64


def pod(name: str, node: str | None, phase: str = "Running", image: str = "bert", **more: Any) -> PodFact:
    return PodFact(
        uid=name, name=name, namespace="team", node=node, phase=phase,
        containers=(PodContainerFact(name="c", image=image),), **more,
    )  # fmt: skip


def test_what_a_node_has_to_keep() -> None:
    pods = [
        pod("here", "n1", image="here:1", statuses=(ContainerStatusFact(name="c", image_id=f"x@sha256:{A}"),)),
        pod("waits", None, "Pending", image="waits:1"),
        pod("mounts", "n1", image="here:1", volumes=(PodVolumeFact(name="model", kind="image", image="model:1"),)),
        pod("there", "n2", image="there:1"),
        pod("done", "n1", "Succeeded", image="done:1"),
    ]
    templates = [Template("CronJob", "team", "nightly", ("nightly:1",)), Template("VolcanoJob", "x", "y", (B,))]
    references = image_references("n1", pods, templates)
    assert references.names == {
        "docker.io/library/here:1": "Pod team/mounts",
        "docker.io/library/model:1": "Pod team/mounts",
        f"docker.io/library/x@sha256:{A}": "Pod team/here",
        f"sha256:{A}": "Pod team/here",
        "docker.io/library/waits:1": "Pod team/waits",
        "docker.io/library/nightly:1": "CronJob team/nightly",
        f"sha256:{B}": "VolcanoJob x/y",
    }
    assert references.referrer(reference_keys("nightly:1")) == "CronJob team/nightly"
    assert references.referrer(reference_keys("there:1")) is None
    assert image_references("n1", (), (), ("jobs.batch",)).unknown == ("jobs.batch",)


def test_what_nodes_have_in_common_is_kept_apart_from_what_each_has() -> None:
    pods = [
        pod("one", "n1", image="one:1"),
        pod("two", "n2", image="two:1"),
        pod("waits", None, "Pending", image="w:1"),
    ]
    cluster = ClusterReferences(pods, [Template("Job", "t", "j", ("t:1",))], ("jobs.batch",))
    common = {"docker.io/library/w:1": "Pod team/waits", "docker.io/library/t:1": "Job t/j"}
    for _ in range(2):
        assert cluster.on("n1").names == common | {"docker.io/library/one:1": "Pod team/one"}
        assert cluster.on("n2").names == common | {"docker.io/library/two:1": "Pod team/two"}
        assert (cluster.on("n3").names, cluster.on("n3").unknown) == (common, ("jobs.batch",))


def test_needed_names_of_the_same_repository() -> None:
    references = image_references(
        "n1", (), [Template("Job", "t", "j", ("lab.io/bert:2", "lab.io/other:1", f"lab.io/bert@sha256:{A}"))]
    )
    assert references.same_repository(reference_keys("lab.io/bert:1")) == ("lab.io/bert:2", f"lab.io/bert@sha256:{A}")
    assert references.same_repository(reference_keys(B)) == ()


def test_a_name_too_long_to_be_kept_protects_every_image_that_may_be_meant() -> None:
    long_name = shorten_name(f"docker-pullable://lab.io/bert/{'x' * MAX_TEXT_CHARS}:2", MAX_TEXT_CHARS)
    references = image_references(
        "n1", [pod("long", "n1", image=long_name), pod("exact", "n1", image="lab.io/a:1")], ()
    )
    assert references.referrer(reference_keys("lab.io/a:1")) == "Pod team/exact"
    assert references.referrer(reference_keys(f"lab.io/bert/{'x' * MAX_TEXT_CHARS}:1")) == "Pod team/long"
    assert references.referrer(reference_keys("lab.io/bert/other:1")) is None


def test_containers_without_an_image_refer_to_none() -> None:
    """A pod whose template lets the kubelet or an operator fill in the image."""
    assert image_references("n1", [pod("p", "n1", image="")], ()).names == {}


def test_directories_that_are_in_use() -> None:
    volumes = (
        PodVolumeFact(name="a", kind="hostPath", path="/mnt/share/a"),
        PodVolumeFact(name="b", kind="nfs", server="nas", path="/export/b"),
        PodVolumeFact(name="c", kind="persistentVolumeClaim", claim="c"),
        PodVolumeFact(name="d", kind="emptyDir"),
        PodVolumeFact(name="e", kind="persistentVolumeClaim", claim="elsewhere"),
    )
    claims = {("team", "c"): (VolumeUse("PersistentVolume c", "/export/c", "nas"),), ("other", "elsewhere"): ()}
    uses = volume_uses(
        [pod("p", "n1", volumes=volumes), pod("done", "n1", "Failed", volumes=volumes)],
        [Template("Job", "team", "j", volumes=volumes[:1])],
        claims,
    )
    assert uses == (
        VolumeUse("Pod team/p", "/mnt/share/a"),
        VolumeUse("Pod team/p", "/export/b", "nas"),
        VolumeUse("Pod team/p", "/export/c", "nas"),
        VolumeUse("Job team/j", "/mnt/share/a"),
    )
