"""Forms of image names, and references of pods and templates."""

from __future__ import annotations

from typing import Any

import pytest

from monitor.base.text import MAX_TEXT_CHARS, shorten_name
from monitor.cleanup.plan.references import Template, VolumeUse, image_references, name_forms, volume_uses
from monitor.facts.kube import ContainerStatusFact, PodContainerFact, PodFact, PodVolumeFact

A, B = "a" * 64, "b" * 64


@pytest.mark.parametrize(
    ("name", "expect"),
    [
        ("nginx", {"docker.io/library/nginx:latest"}),
        ("nginx:1.25", {"docker.io/library/nginx:1.25"}),
        ("docker.io/nginx", {"docker.io/library/nginx:latest"}),
        ("index.docker.io/library/nginx:1", {"docker.io/library/nginx:1"}),
        ("pytorch/pytorch:2", {"docker.io/pytorch/pytorch:2"}),
        ("harbor.lab/nlp/bert", {"harbor.lab/nlp/bert:latest"}),
        ("harbor:5000/bert", {"harbor:5000/bert:latest"}),
        ("localhost/bert:1", {"localhost/bert:1"}),
        (f"bert@sha256:{A}", {f"docker.io/library/bert@sha256:{A}", f"sha256:{A}"}),
        (
            f"harbor:5000/x/bert:1@sha256:{A}",
            {f"harbor:5000/x/bert@sha256:{A}", f"sha256:{A}", "harbor:5000/x/bert:1"},
        ),
        (f"docker-pullable://harbor.lab/x@sha256:{A}", {f"harbor.lab/x@sha256:{A}", f"sha256:{A}"}),
        (f"docker://sha256:{A}", {f"sha256:{A}"}),
        (A, {f"sha256:{A}"}),
        ("", set()),
        (" ", set()),
    ],
)
def test_the_forms_of_a_name(name: str, expect: set[str]) -> None:
    assert name_forms(name) == expect


def pod(name: str, node: str | None, phase: str = "Running", image: str = "bert", **more: Any) -> PodFact:
    return PodFact(
        uid=name, name=name, namespace="team", node=node, phase=phase,
        containers=(PodContainerFact(name="c", image=image),), **more,
    )  # fmt: skip


def test_what_a_node_has_to_keep() -> None:
    pods = [
        pod("here", "n1", image="here:1", statuses=(ContainerStatusFact(name="c", image_id=f"x@sha256:{A}"),)),
        pod("waits", None, "Pending", image="waits:1"),
        pod("there", "n2", image="there:1"),
        pod("done", "n1", "Succeeded", image="done:1"),
    ]
    templates = [Template("CronJob", "team", "nightly", ("nightly:1",)), Template("VolcanoJob", "x", "y", (B,))]
    references = image_references("n1", pods, templates)
    assert references.names == {
        "docker.io/library/here:1": "Pod team/here",
        f"docker.io/library/x@sha256:{A}": "Pod team/here",
        f"sha256:{A}": "Pod team/here",
        "docker.io/library/waits:1": "Pod team/waits",
        "docker.io/library/nightly:1": "CronJob team/nightly",
        f"sha256:{B}": "VolcanoJob x/y",
    }
    assert references.referrer(name_forms("nightly:1")) == "CronJob team/nightly"
    assert references.referrer(name_forms("there:1")) is None
    assert image_references("n1", (), (), ("jobs.batch",)).unknown == ("jobs.batch",)


def test_needed_names_of_the_same_repository() -> None:
    references = image_references(
        "n1", (), [Template("Job", "t", "j", ("lab.io/bert:2", "lab.io/other:1", f"lab.io/bert@sha256:{A}"))]
    )
    assert references.same_repository(name_forms("lab.io/bert:1")) == ("lab.io/bert:2", f"lab.io/bert@sha256:{A}")
    assert references.same_repository(name_forms(B)) == ()


def test_a_name_too_long_to_be_kept_protects_every_image_that_may_be_meant() -> None:
    long_name = shorten_name(f"docker-pullable://lab.io/bert/{'x' * MAX_TEXT_CHARS}:2", MAX_TEXT_CHARS)
    references = image_references(
        "n1", [pod("long", "n1", image=long_name), pod("exact", "n1", image="lab.io/a:1")], ()
    )
    assert references.referrer(name_forms("lab.io/a:1")) == "Pod team/exact"
    assert references.referrer(name_forms(f"lab.io/bert/{'x' * MAX_TEXT_CHARS}:1")) == "Pod team/long"
    assert references.referrer(name_forms("lab.io/bert/other:1")) is None


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
