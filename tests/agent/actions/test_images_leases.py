"""Leases that are not of a container being created, as containerd 2.1 has one for each pod, do not stop a removal."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta

import pytest

from monitor.agent.actions import cri_images
from monitor.agent.runtime.containerd_native import Containerd
from monitor.facts.actions import RemoveImage
from tests.agent.actions.rigs import ContainerdRig, rig
from tests.support.engines import BASE, PAUSE
from tests.support.image_archive import Image, archive, busybox_layer, layer


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ContainerdRig]:
    base = busybox_layer()
    images = archive((Image(BASE, (base,)), Image(PAUSE, (base,))))
    with rig("containerd", tmp_path_factory.mktemp("leases"), images) as started:
        assert isinstance(started, ContainerdRig)
        yield started


@pytest.fixture
def containerd(engine: ContainerdRig) -> Iterator[Containerd]:
    with closing(Containerd(engine.engine.socket)) as connection:
        yield connection


def lease(containerd: Containerd, name: str) -> None:
    containerd.create_lease(name, (datetime.now(UTC) + timedelta(hours=1)).isoformat(timespec="seconds"))


def remove(engine: ContainerdRig, name: str) -> str:
    engine.load(Image(name, (busybox_layer(), layer({name: os.urandom(1 << 16)}))))
    image = engine.facts()[name]
    action = RemoveImage(
        runtime=engine.name, image_id=image.id, names=image.names, min_age_seconds=0.0, protect_local=False
    )
    return engine.actions().remove(action).code


def test_the_lease_of_a_pod_does_not_stop_a_removal(engine: ContainerdRig, containerd: Containerd) -> None:
    if engine.sandbox_id not in containerd.leases(since=0.0):  # before containerd 2.1
        lease(containerd, engine.sandbox_id)
    assert remove(engine, "local/leased:1") == "removed"
    assert engine.sandbox_id in containerd.leases(since=0.0)


def test_a_lease_without_a_sandbox_is_a_container_in_creation(
    engine: ContainerdRig, containerd: Containerd, monkeypatch: pytest.MonkeyPatch
) -> None:
    lease(containerd, "f" * 64)
    with monkeypatch.context() as patch:
        patch.setattr(cri_images, "_CREATE_SECONDS", 0.5)
        assert remove(engine, "local/creating:1") == "in-use"
    assert "local/creating:1" in engine.facts()
    containerd.delete_lease("f" * 64, collect=False)
    assert remove(engine, "local/creating:1") == "removed"


def test_a_pod_whose_network_is_being_set_up_does_not_stop_a_removal(
    engine: ContainerdRig, containerd: Containerd, monkeypatch: pytest.MonkeyPatch
) -> None:
    """CRI lists a sandbox when it runs; containerd's store has it from its lease on."""
    monkeypatch.setattr(Containerd, "sandboxes", lambda _: frozenset({"e" * 64}))
    lease(containerd, "e" * 64)
    assert remove(engine, "local/networking:1") == "removed"
    containerd.delete_lease("e" * 64, collect=False)
