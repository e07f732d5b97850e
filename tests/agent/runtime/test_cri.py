"""CRI: a real containerd, with and without its CRI plug-in, running, restarted and wedged."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator

import pytest

from monitor.agent.runtime.api import EngineError, NotServedError
from monitor.agent.runtime.cri import CriRuntime
from monitor.facts import ContainerFact
from tests.support import wait_until
from tests.support.engines import BASE, MIB, ONE, PAUSE, TWO, ContainerdEngine, Pod, frozen, make_containerd


@pytest.fixture(scope="module")
def pod(containerd_engine: ContainerdEngine) -> Iterator[Pod]:
    """A pod whose container has written 3 MiB."""
    fill = "echo hello; dd if=/dev/zero of=/x bs=1M count=3; exec /bin/sleep 100000"
    yield containerd_engine.run_pod("train-0", ONE, "/bin/sh", "-c", fill)
    containerd_engine.remove_pods()


@pytest.fixture
def runtime(containerd_engine: ContainerdEngine) -> CriRuntime:
    return CriRuntime(containerd_engine.socket)


def by_id(runtime: CriRuntime) -> dict[str, ContainerFact]:
    return {fact.id: fact for fact in runtime.containers()}


def test_containers_of_a_real_runtime(containerd_engine: ContainerdEngine, pod: Pod, runtime: CriRuntime) -> None:
    facts = by_id(runtime)
    assert facts.keys() == {pod.sandbox, pod.container}
    container, sandbox = facts[pod.container], facts[pod.sandbox]
    for fact in (container, sandbox):
        assert (fact.runtime, fact.state) == ("containerd", "running")
        assert (fact.pod_uid, fact.pod_name, fact.namespace) == ("uid-of-train-0", "train-0", "lab")
        assert os.readlink(f"/proc/{fact.pid}/exe").endswith("busybox")
        assert time.time() - 120 < (fact.created_at or 0) < time.time()
    assert (container.sandbox, container.container, container.name) == (False, "main", "main")
    assert (container.image, sandbox.image) == (f"docker.io/{ONE}", f"docker.io/{PAUSE}")
    assert container.log_path == f"{containerd_engine.base}/pods/train-0/main/0.log"
    assert (container.created_at or 0) <= (container.started_at or 0)
    assert (container.finished_at, container.exit_code) == (None, None)
    assert (sandbox.sandbox, sandbox.container, sandbox.log_path) == (True, None, None)


def test_a_container_that_ends_is_asked_again(containerd_engine: ContainerdEngine, runtime: CriRuntime) -> None:
    pod = containerd_engine.run_pod("short", BASE, "/bin/sleep", "100000")
    assert by_id(runtime)[pod.container].state == "running"
    containerd_engine.stop_container(pod.container)
    fact = by_id(runtime)[pod.container]
    assert (fact.state, fact.pid) == ("exited", None)
    assert (fact.finished_at or 0) >= (fact.started_at or 0) > 0
    assert fact.exit_code == 137


def test_images_of_a_real_runtime(containerd_engine: ContainerdEngine, pod: Pod, runtime: CriRuntime) -> None:
    wait_until(lambda: runtime.images().total_bytes, 30, "the runtime has measured its images")
    cache = runtime.images()
    assert (cache.runtime, cache.root) == ("containerd", containerd_engine.root)
    assert cache.version
    assert (cache.total_bytes or 0) > 3 * MIB
    images = {image.names: image for image in cache.images}
    assert images.keys() == {(f"docker.io/{name}",) for name in (BASE, ONE, TWO, PAUSE)}
    one, two, pause = (images[(f"docker.io/{name}",)] for name in (ONE, TWO, PAUSE))
    assert pod.container in one.containers
    assert two.containers == ()
    assert (one.size_bytes or 0) > MIB
    assert (one.pinned, pause.pinned) == (False, True)  # this version does not report it


def test_usage_of_a_real_runtime(pod: Pod, runtime: CriRuntime) -> None:
    wait_until(lambda: runtime.usage().writable.get(pod.container, 0) >= 3 * MIB, 30, "the layer was measured")
    usage = runtime.usage()
    assert usage.runtime == "containerd"
    assert usage.writable_bytes == sum(usage.writable.values())
    assert (usage.layers_bytes or 0) > usage.writable[pod.container]
    assert (usage.build_cache_bytes, usage.volumes) == (None, ())


def test_a_wedged_runtime_is_waited_for(containerd_engine: ContainerdEngine, pod: Pod, runtime: CriRuntime) -> None:
    runtime.containers()
    answers: list[tuple[ContainerFact, ...]] = []
    asking = [
        threading.Thread(target=lambda one=one: answers.append(one.containers()))
        for one in (runtime, CriRuntime(containerd_engine.socket))  # connected and not yet connected
    ]
    with frozen(containerd_engine.pid):
        for thread in asking:
            thread.start()
        time.sleep(0.5)
        assert answers == []
    for thread in asking:
        thread.join(60)
    assert [len(answer) for answer in answers] == [len(runtime.containers())] * 2


def test_a_runtime_without_cri_is_none(tmp_path_factory: pytest.TempPathFactory) -> None:
    engine = make_containerd(tmp_path_factory.mktemp("nocri"), cri=False)
    try:
        engine.start(wait=False)
        wait_until(engine.accepts, 30, "the runtime listens")
        with pytest.raises(NotServedError, match="does not serve CRI"):
            CriRuntime(engine.socket).containers()
    finally:
        engine.stop()
        engine.clean_up()


def test_a_restart_is_survived(tmp_path_factory: pytest.TempPathFactory) -> None:
    engine = make_containerd(tmp_path_factory.mktemp("restarted"))
    try:
        engine.start()
        runtime = CriRuntime(engine.socket)
        assert runtime.containers() == ()
        engine.stop()
        with pytest.raises((EngineError, NotServedError), match=engine.socket):
            runtime.containers()
        engine.start()
        assert runtime.containers() == ()
    finally:
        engine.stop()
        engine.clean_up()
