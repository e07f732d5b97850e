"""The parts of the siege, and a minute of it; `make siege` takes five."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from monitor.base.patterns import pattern_problem
from monitor.cluster.agents.client import MAX_BODY_BYTES
from monitor.cluster.agents.snapshot import decode_snapshot
from tests.siege.canaries import CanaryAlert
from tests.siege.health import HealthCheck
from tests.siege.liar import Liar
from tests.siege.limits import MIB, CgroupLimit, WatchedLimit, memory_bytes, memory_limit
from tests.siege.report import write
from tests.siege.run import SiegeCourse, run
from tests.siege.silences import worst_patterns
from tests.siege.verdict import judge, missed

Change = Callable[[SiegeCourse], SiegeCourse]


def calm() -> SiegeCourse:
    """A siege that every goal survives."""
    both = {"agent": 40 * MIB, "daemon": 300 * MIB}
    return SiegeCourse(
        minutes=5,
        limit_kind="watchdog on PSS",
        canaries=[CanaryAlert(kind, "name", 0.0, 3.0) for kind in ("service", "pod")],
        checks={name: [HealthCheck(0.01)] for name in both},
        peaks=both,
        log_bytes=dict.fromkeys(both, MIB),
        exit_codes=dict.fromkeys(both, 0),
        attacks={"idle connections": 1},
        silences=1,
        messages=1,
    )


def test_a_siege_without_harm_is_passed() -> None:
    assert missed(judge(calm())) == []


@pytest.mark.parametrize(
    ("change", "expect"),
    [
        (lambda course: replace(course, ended=["agent"]), "siege_ended_early"),
        (lambda course: replace(course, peaks=course.peaks | {"agent": 257 * MIB}), "siege_agent_rss_mib"),
        (lambda course: replace(course, descriptors={"daemon": 1024}), "siege_daemon_descriptors"),
        (lambda course: replace(course, exit_codes={"agent": 0, "daemon": None}), "siege_daemon_exit_code"),
        (lambda course: replace(course, exit_codes={"agent": -6, "daemon": 0}), "siege_agent_exit_code"),
        (lambda course: replace(course, canaries=[]), "siege_canaries"),
        (lambda course: _canary(course, CanaryAlert("pod", "late", 0.0, 10.5)), "siege_pod_worst_s"),
        (lambda course: _canary(course, CanaryAlert("service", "lost", 0.0)), "siege_canaries_unreported"),
        (lambda course: _check(course, HealthCheck(2.1)), "siege_agent_health_worst_s"),
        (lambda course: _check(course, HealthCheck(0.1, "status 503")), "siege_agent_health_failed"),
        (
            lambda course: replace(course, shared_checks={"agent": [HealthCheck(9.0)] * 3}),
            "siege_agent_shared_health_row",
        ),
        (lambda course: replace(course, log_bytes={"agent": 55 * MIB}), "siege_agent_log_mib"),
        (lambda course: replace(course, state_bytes=796 * MIB), "siege_state_mib"),
        (lambda course: replace(course, largest_message_bytes=20 * MIB), "siege_message_mib"),
        (lambda course: replace(course, attacks={"idle connections": 0}), "siege_attacks"),
        (lambda course: replace(course, unexpected=["201 instead of 400"]), "siege_unexpected"),
    ],
)
def test_harm_is_named(change: Change, expect: str) -> None:
    assert expect in missed(judge(change(calm())))


def _canary(course: SiegeCourse, canary: CanaryAlert) -> SiegeCourse:
    return replace(course, canaries=[*course.canaries, canary])


def _check(course: SiegeCourse, check: HealthCheck) -> SiegeCourse:
    return replace(course, checks=course.checks | {"agent": [check]})


def test_the_report_is_written(tmp_path: Path) -> None:
    course = calm()
    write(course, judge(course), tmp_path)
    assert "watchdog on PSS" in (tmp_path / "SIEGE.md").read_text()
    assert "siege_pod_worst_s" in (tmp_path / "siege.json").read_text()


# Attacks


def test_a_lie_is_large_and_accepted_and_never_the_same() -> None:
    liar = Liar()
    first, second = liar.lie(), liar.lie()
    assert MAX_BODY_BYTES * 0.8 < len(first) <= MAX_BODY_BYTES
    mounts = [decode_snapshot(body).mounts for body in (first, second)]
    assert mounts[0] is not None
    assert mounts[1] is not None
    assert len(mounts[0]) > 20
    assert not {mount.path for mount in mounts[0]} & {mount.path for mount in mounts[1]}


def test_worst_patterns_are_valid() -> None:
    assert [pattern_problem(pattern) for pattern in worst_patterns() if pattern_problem(pattern)] == []


# Limits


@pytest.mark.parametrize(
    ("own", "folder", "file"),
    [
        ("0::/system.slice/a\n", "system.slice/a", "memory.max"),
        ("5:cpu:/b\n4:memory:/a\n0::/\n", "memory/a", "memory.limit_in_bytes"),
    ],
    ids=["v2", "v1"],
)
def test_a_control_group_is_created_below_the_own_and_removed(own: str, folder: str, file: str, tmp_path: Path) -> None:
    (tmp_path / "own").write_text(own)
    (tmp_path / folder).mkdir(parents=True)
    with memory_limit("agent", 256 * MIB, tmp_path / "own", tmp_path) as limit:
        assert isinstance(limit, CgroupLimit)
        assert limit.folder.parent == tmp_path / folder
        assert (limit.folder / file).read_text() == str(256 * MIB)
        (limit.folder / "memory.oom_control").write_text("oom_kill_disable 0\nunder_oom 0\noom_kill 0\n")
        assert not limit.exceeded(0)
        (limit.folder / "memory.oom_control").write_text("oom_kill_disable 0\nunder_oom 0\noom_kill 1\n")
        assert limit.exceeded(0)
    assert list((tmp_path / folder).iterdir()) == []


def test_without_control_groups_memory_is_watched(tmp_path: Path) -> None:
    (tmp_path / "own").write_text("")
    with memory_limit("agent", 1, tmp_path / "own", tmp_path) as limit:
        assert isinstance(limit, WatchedLimit)
        assert limit.exceeded(os.getpid())
    assert not WatchedLimit(1 << 60).exceeded(os.getpid())
    assert memory_bytes(os.getpid()) > MIB


@pytest.mark.e2e
@pytest.mark.long
@pytest.mark.timeout(600)
def test_a_minute_of_siege_does_no_harm(tmp_path: Path) -> None:
    goals = judge(run(1, tmp_path))
    assert [(goal.key, goal.value) for goal in goals if not goal.met] == []
