"""Registry mirrors of the lab's containerd, as tests of failed pulls configure them."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

import pytest

from tests.lab.lab import Lab
from tests.lab.modern.containerd_engine import ContainerdLabEngine
from tests.support import wait_until

pytestmark = pytest.mark.lab("1.35")
REGISTRY = "mirrored.test"


def mirrored(lab: Lab, undo: ExitStack, url: str) -> None:
    assert isinstance(lab.engine, ContainerdLabEngine)
    lab.engine.add_mirror(REGISTRY, url)
    undo.callback(lab.engine.remove_mirror, REGISTRY)


def test_an_image_is_pulled_through_a_mirror(lab: Lab, pods: list[Any], undo: ExitStack) -> None:
    lab.push_image("team/mirrored:1")
    mirrored(lab, undo, f"http://{lab.registry}")
    pods.append(lab.run_pod("through-mirror", image=f"{REGISTRY}/team/mirrored:1"))


def test_a_mirror_that_is_down_is_named_in_the_error(lab: Lab, pods: list[Any], undo: ExitStack) -> None:
    mirrored(lab, undo, "http://127.0.0.1:1")
    pods.append(lab.run_pod("dead-mirror", image=f"{REGISTRY}/team/dead:1", phase=None))
    refused = "dial tcp 127.0.0.1:1: connect: connection refused"
    wait_until(lambda: any(refused in event for event in lab.cluster.events_of(pods[0])), 30, refused)
