"""Normalization of image references."""

from __future__ import annotations

import pytest

from monitor.facts.image_names import (
    is_sandbox_image,
    matching_label_pin,
    matching_pin,
    reference_keys,
    split_reference,
)

ID = "a" * 64
DIGEST = f"sha256:{'d' * 64}"


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("busybox", "docker.io/library/busybox:latest", True),
        ("busybox:1", "docker.io/busybox:1", True),
        ("index.docker.io/library/busybox:1", "busybox:1", True),
        ("nvidia/cuda:12", "docker.io/nvidia/cuda:12", True),
        ("nvidia/cuda:12", "docker.io/library/nvidia/cuda:12", False),
        ("busybox:1", "busybox:2", False),
        ("harbor.lab/a:1", "docker.io/harbor.lab/a:1", False),
        ("harbor.lab:8443/a", "harbor.lab:8443/a:latest", True),
        ("localhost/a:1", "a:1", False),
        ("localhost:5000/a", "localhost:5000/a:latest", True),
        (ID, f"sha256:{ID}", True),
        (ID, f"sha256:{'b' * 64}", False),
        (f"a/b@{DIGEST}", f"docker.io/a/b@{DIGEST}", True),
        (f"a/b:1@{DIGEST}", f"a/b@{DIGEST}", True),
        (f"a/b:1@{DIGEST}", "a/b:1", True),
        (f"a/b@{DIGEST}", f"mirror.lab/a/b@{DIGEST}", True),  # the same content under another name
        (f"a/b@{DIGEST}", "a/b:latest", False),
    ],
)
def test_which_names_are_of_one_image(one: str, other: str, same: bool) -> None:
    assert bool(reference_keys(one) & reference_keys(other)) is same
    assert bool(reference_keys(other) & reference_keys("x:1", one)) is same


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
        (f"bert@sha256:{ID}", {f"docker.io/library/bert@sha256:{ID}", f"sha256:{ID}"}),
        (
            f"harbor:5000/x/bert:1@sha256:{ID}",
            {f"harbor:5000/x/bert@sha256:{ID}", f"sha256:{ID}", "harbor:5000/x/bert:1"},
        ),
        (f"docker-pullable://harbor.lab/x@sha256:{ID}", {f"harbor.lab/x@sha256:{ID}", f"sha256:{ID}"}),
        (f"docker://sha256:{ID}", {f"sha256:{ID}"}),
        (ID, {f"sha256:{ID}"}),
        (ID.upper(), {f"sha256:{ID}"}),
        ("", set()),
        (" ", set()),
    ],
)
def test_the_keys_of_a_name(name: str, expect: set[str]) -> None:
    assert reference_keys(name) == expect


@pytest.mark.parametrize(
    ("name", "expect"),
    [
        ("busybox", ("docker.io/library/busybox", None, None)),
        ("harbor.lab:8443/a/b", ("harbor.lab:8443/a/b", None, None)),
        (f"harbor.lab:8443/a:1@{DIGEST}", ("harbor.lab:8443/a", "1", DIGEST)),
    ],
)
def test_the_parts_of_a_name(name: str, expect: tuple[str, str | None, str | None]) -> None:
    assert split_reference(name) == expect


@pytest.mark.parametrize(
    ("names", "pin", "matches"),
    [
        (("harbor.lab/base/cuda:12",), "harbor.lab/base/*", True),
        (("harbor.lab/base/cuda:12",), "harbor.lab/base/cuda", True),
        (("harbor.lab/base/cuda:12",), "*/cuda:12", True),
        (("harbor.lab/base/cuda:12",), "base/*", False),
        (("docker.io/library/busybox:1",), "busybox*", True),
        (("docker.io/nvidia/cuda:12",), "nvidia/*", True),
        (("busybox:1",), "docker.io/library/*", True),
        ((f"sha256:{ID}",), f"sha256:{ID}", True),
        ((f"sha256:{ID}",), ID[:12] + "*", True),
        ((f"harbor.lab/a@{DIGEST}",), DIGEST, True),
        (("harbor.lab/a:1",), "label:harbor.lab/a:1", False),
        (("docker.io/local/bb:1",), "local/*", True),
        (("harbor.lab/A:1",), "harbor.lab/a:*", False),
    ],
)
def test_pins(names: tuple[str, ...], pin: str, matches: bool) -> None:
    assert matching_pin(names, ("no/such", pin)) == (pin if matches else None)


@pytest.mark.parametrize(
    ("labels", "pin", "matches"),
    [
        ({"keep": ""}, "label:keep", True),
        ({"keep": "yes"}, "label:keep=yes", True),
        ({"keep": "yes"}, "label:keep=no", False),
        ({"team": "nlp-1"}, "label:team=nlp-*", True),
        ({}, "label:keep", False),
        ({"keep": ""}, "keep", False),
    ],
)
def test_pins_by_label(labels: dict[str, str], pin: str, matches: bool) -> None:
    assert matching_label_pin(labels, (pin,)) == (pin if matches else None)


@pytest.mark.parametrize(
    ("name", "expect"),
    [
        ("registry.k8s.io/pause:3.9", True),
        ("registry.aliyuncs.com/google_containers/pause:3.6", True),
        ("rancher/mirrored-pause:3.6", True),
        ("k8s.gcr.io/pause-amd64:3.1", True),
        ("registry.access.redhat.com/rhel7/pod-infrastructure", True),
        ("pause.lab/cuda:1", False),
    ],
)
def test_images_of_sandboxes(name: str, expect: bool) -> None:
    assert is_sandbox_image(name) is expect
