# ruff: noqa: E501  # messages are quoted in full
from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitor.explain.error_chain.causes import SchedulingCause
from monitor.explain.error_chain.scheduling import main_reason, parse_scheduling

S = SchedulingCause
PREEMPTION = " preemption: 0/5 nodes are available: 3 No preemption victims found for incoming pod, 2 Preemption is not helpful for scheduling."
MESSAGES: list[tuple[str, str, list[tuple[int | None, SchedulingCause]]]] = [
    ("1.20, a comma within the taint", "0/5 nodes are available: 3 Insufficient nvidia.com/gpu, 2 node(s) had taint {k: v}, that the pod didn't tolerate.", [(3, S.GPUS), (2, S.TAINT)]),
    ("1.24", "0/5 nodes are available: 2 node(s) had untolerated taint {node-role.kubernetes.io/master: }, 3 Insufficient nvidia.com/gpu." + PREEMPTION, [(2, S.TAINT), (3, S.GPUS)]),
    ("1.33, without keys", "0/5 nodes are available: 2 node(s) had untolerated taint(s), 3 Insufficient nvidia.com/gpu. no new claims to deallocate," + PREEMPTION, [(2, S.TAINT), (3, S.GPUS)]),
    ("selector, old words", "0/2 nodes are available: 2 node(s) didn't match node selector.", [(2, S.SELECTOR)]),
    ("selector", "0/10 nodes are available: 3 node(s) had volume node affinity conflict, 7 node(s) didn't match Pod's node affinity/selector." + PREEMPTION, [(3, S.VOLUME_ELSEWHERE), (7, S.SELECTOR)]),
    ("pod affinity is not node affinity", "0/1 nodes are available: 1 node(s) didn't match pod affinity/anti-affinity rules, 1 node(s) didn't match pod anti-affinity rules.", [(1, S.POD_AFFINITY), (1, S.POD_AFFINITY)]),
    ("cordoned", "0/2 nodes are available: 2 node(s) were unschedulable.", [(2, S.CORDONED)]),
    ("unbound, the plug-in speaks", 'running "VolumeBinding" filter plugin for pod "bert-0": pod has unbound immediate PersistentVolumeClaims', [(None, S.CLAIM_UNBOUND)]),
    ("missing claim, counted", '0/1 nodes are available: 1 persistentvolumeclaim "data" not found.', [(1, S.CLAIM_MISSING)]),
    ("too many pods", "0/1 nodes are available: 1 Too many pods.", [(1, S.PODS)]),
    ("Volcano", "all nodes are unavailable: 3 node(s) resource fit failed.", [(3, S.OTHER)]),
    ("Volcano 1.9", "0/4 nodes are unavailable: 4 Insufficient nvidia.com/gpu.", [(4, S.GPUS)]),
    ("Volcano, a gang", "pod group is not ready, 2 minAvailable, 1 Pending; Pending: 1 Undetermined", [(None, S.GANG_INCOMPLETE)]),
    ("Volcano, a gang with counts", "6/6 tasks in gang unschedulable: pod group is not ready, 6 Pending, 6 minAvailable; Pending: 6 Unschedulable", [(None, S.GANG_WAITING)]),
    ("Kueue", "couldn't assign flavors to pod set main: insufficient quota for nvidia.com/gpu in flavor a100, request > maximum capacity (24 > 16)", [(None, S.QUEUE_TOO_SMALL)]),
    ("something new", "the moon is full", [(None, S.OTHER)]),
    ("nothing", "", []),
]  # fmt: skip


@pytest.mark.parametrize(("name", "message", "expect"), MESSAGES, ids=[m[0] for m in MESSAGES])
def test_parts(name: str, message: str, expect: list[tuple[int | None, SchedulingCause]]) -> None:
    assert [(part.nodes, part.cause) for part in parse_scheduling(message)] == expect


MAIN_REASONS: list[tuple[str, SchedulingCause]] = [
    ("0/3 nodes are available: 1 node(s) had untolerated taint {node-role.kubernetes.io/control-plane: }, 2 node(s) had untolerated taint {node.kubernetes.io/disk-pressure: }.", S.DISK_PRESSURE),
    ("0/9 nodes are available: 1 node(s) had untolerated taint {node-role.kubernetes.io/control-plane: }, 8 Insufficient nvidia.com/gpu.", S.GPUS),
    ("0/72 nodes are available: 23 node(s) didn't match node selector, 43 node(s) didn't have free ports for the requested pod ports, 45 Insufficient cpu.", S.PORTS),
    ("2/2 tasks in gang unschedulable: pod group is not ready, 2 Pending, 2 minAvailable; Pending: 2 Unschedulable. Origin reason is bert-0: 0/4 nodes are unavailable: 4 Insufficient nvidia.com/gpu.", S.GPUS),
    ("2 nodes CardInsufficientCore(gpu01,gpu02), 1 nodes CardUuidMismatch(gpu03)", S.VGPU_CORES),
    ("0/2 nodes are available: 1 cannot allocate all claims, 1 node(s) didn't match Pod's node affinity/selector. still not schedulable," + PREEMPTION, S.DEVICE_CLAIM),
    ("0/4 nodes are available: pod has unbound immediate PersistentVolumeClaims. not found", S.CLAIM_UNBOUND),
    ("0/6 nodes are available: 2 node(s) didn't match Pod's node affinity/selector, 4 node(s) didn't match PersistentVolume's node affinity.", S.VOLUME_ELSEWHERE),
    ("0/2 nodes are available: 2 node(s) had untolerated taint {dedicated: team}.", S.TAINT),
]  # fmt: skip


@pytest.mark.parametrize(("message", "expect"), MAIN_REASONS)
def test_main_reason(message: str, expect: SchedulingCause) -> None:
    reason = main_reason(parse_scheduling(message))
    assert reason is not None
    assert reason.cause is expect


@given(st.text())
def test_no_message_breaks_it(message: str) -> None:
    parse_scheduling(message)
