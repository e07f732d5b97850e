"""NVML sessions: missing, unloaded and replaced drivers, GPUs that are lost and return, and events."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from monitor.agent.gpu import DriverMissingError, GpuDriverError, StaleSessionError
from monitor.agent.gpu.nvml import NvmlEvents, NvmlSession
from monitor.facts import GpuFact
from tests.nvml import NO_PERMISSION, UNKNOWN, InProcessNvml
from tests.support.clock import FakeClock

pytest_plugins = ["tests.nvml.fixtures"]


def read(session: NvmlSession, index: int = 0) -> GpuFact:
    with session.reading():
        return session.gpus[index].read()


def test_versions(nvml: InProcessNvml) -> None:
    session = NvmlSession()
    with session.reading():
        assert (session.driver_version, session.cuda_version) == ("535.104.05", "12.2")


def test_a_node_without_a_loaded_driver_has_none(nvml: InProcessNvml) -> None:
    nvml.unload_driver()
    with pytest.raises(DriverMissingError, match=r"no NVIDIA driver on this node \(Driver Not Loaded\)"):
        read(NvmlSession())


def test_a_driver_that_does_not_work_is_not_a_missing_one(nvml: InProcessNvml) -> None:
    nvml.answer("nvmlInitWithFlags", 18)
    with pytest.raises(GpuDriverError, match="mismatch") as caught:
        read(NvmlSession())
    assert not isinstance(caught.value, DriverMissingError)


def test_a_driver_that_goes_is_a_fault_until_it_is_back(nvml: InProcessNvml) -> None:
    session = NvmlSession()
    read(session)
    nvml.unload_driver()
    with pytest.raises(StaleSessionError):
        read(session)
    with pytest.raises(GpuDriverError, match="does not start: Driver Not Loaded") as caught:
        read(session)
    assert not isinstance(caught.value, DriverMissingError)
    nvml.load_driver()
    assert read(session).index == 0


def test_a_replaced_driver_is_found_again_by_all_sessions(nvml: InProcessNvml) -> None:
    """The driver rescans only after every session has released it."""
    sessions = [NvmlSession() for _ in range(3)]
    for session in sessions:
        read(session)
    nvml.gpus(2)
    nvml.reload_driver()
    for session in sessions:
        with pytest.raises(StaleSessionError):
            read(session)
    for session in sessions:
        read(session)
        assert len(session.gpus) == 2


def test_a_replaced_driver_that_only_says_unknown_is_found_within_a_minute(nvml: InProcessNvml) -> None:
    clock = FakeClock()
    session = NvmlSession(clock)
    read(session)
    nvml.reload_driver(answers=UNKNOWN)
    assert read(session).error is not None
    clock.advance(60)
    assert read(session).error is not None
    assert read(session).error is None


def test_a_card_nobody_hands_out(nvml: InProcessNvml) -> None:
    nvml.lose(1)
    session = NvmlSession()
    with session.reading():
        assert [gpu.identity.index for gpu in session.gpus] == [0, 2, 3, 4, 5, 6, 7]
        assert session.unreadable[1].lost
    nvml.answer("nvmlDeviceGetHandleByIndex_v2", NO_PERMISSION)
    session.close()
    with session.reading():
        assert (session.gpus, session.unreadable[0].lost) == ((), False)


def test_a_card_that_came_back_is_seen_within_a_minute(nvml: InProcessNvml) -> None:
    """By all sessions together: the driver counts GPUs again only after every session has released it."""
    nvml.lose(1)
    clock = FakeClock()
    sessions = [NvmlSession(clock), NvmlSession(clock)]
    for session in sessions:
        read(session)
    nvml.find(1)
    clock.advance(60)
    for _ in range(2):
        for session in sessions:
            read(session)
    assert [len(session.gpus) for session in sessions] == [8, 8]


def drain(events: NvmlEvents) -> list[tuple[int, int]]:
    return [(xid.gpu.identity.index, xid.code) for xid in events.drain()]


def test_events_come_once_and_from_the_moment_of_listening(nvml: InProcessNvml) -> None:
    nvml.xid(0, 13)
    events = NvmlEvents(NvmlSession())
    assert drain(events) == []
    nvml.xid(0, 31)
    nvml.xid(5, 48)
    assert drain(events) == [(0, 31), (5, 48)]
    assert drain(events) == []


def test_events_of_the_others_still_come_when_a_card_is_lost(nvml: InProcessNvml) -> None:
    events = NvmlEvents(NvmlSession())
    drain(events)
    nvml.lose(0)
    drain(events)  # the loss is noticed; the next drain subscribes to the rest
    drain(events)
    nvml.xid(5, 48)
    assert drain(events) == [(5, 48)]


def test_events_come_again_after_the_driver_was_replaced(nvml: InProcessNvml) -> None:
    events = NvmlEvents(NvmlSession())
    drain(events)
    nvml.reload_driver()
    with pytest.raises(StaleSessionError):
        drain(events)
    assert drain(events) == []
    nvml.xid(5, 48)
    assert drain(events) == [(5, 48)]


def test_a_node_without_the_library_has_no_driver(tmp_path: Path) -> None:
    (tmp_path / "libnvidia-ml.so.1").write_text("not a library")  # hides a real one
    program = (
        "from monitor.agent.gpu.nvml import DriverMissingError, NvmlSession\n"
        "try:\n    NvmlSession().reading().__enter__()\n"
        "except DriverMissingError as error:\n    print(error)\n"
    )
    root = Path(__file__).parents[4]
    result = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "LD_LIBRARY_PATH": str(tmp_path), "PYTHONPATH": str(root)},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert result.stdout == "no NVIDIA driver on this node (NVML Shared Library Not Found)\n"


def test_another_program_sees_the_same_cards(nvml: InProcessNvml) -> None:
    """Benchmarks and other exporters rely on this: the library alone, found through the environment."""
    nvml.gpu(3, util=77)
    program = (
        "import pynvml\n"
        "pynvml.nvmlInit()\n"
        "print(pynvml.nvmlDeviceGetUtilizationRates(pynvml.nvmlDeviceGetHandleByIndex(3)).gpu)\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, **nvml.environment()},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert result.stdout == "77\n"
