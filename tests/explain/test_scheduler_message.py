# ruff: noqa: E501  # messages are quoted in full
from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitor.explain.scheduler_message import SchedulerReason, parse_scheduler_message

S = SchedulerReason
PREEMPTION = " preemption: 0/5 nodes are available: 3 No preemption victims found for incoming pod, 2 Preemption is not helpful for scheduling."
MESSAGES: list[tuple[str, str, list[tuple[int | None, SchedulerReason]]]] = [
    ("1.20, a comma within the taint", "0/5 nodes are available: 3 Insufficient nvidia.com/gpu, 2 node(s) had taint {k: v}, that the pod didn't tolerate.", [(3, S.RESOURCE), (2, S.TAINT)]),
    ("1.24", "0/5 nodes are available: 2 node(s) had untolerated taint {node-role.kubernetes.io/master: }, 3 Insufficient nvidia.com/gpu." + PREEMPTION, [(2, S.TAINT), (3, S.RESOURCE)]),
    ("1.33, without keys", "0/5 nodes are available: 2 node(s) had untolerated taint(s), 3 Insufficient nvidia.com/gpu. no new claims to deallocate," + PREEMPTION, [(2, S.TAINT), (3, S.RESOURCE)]),
    ("selector, old words", "0/2 nodes are available: 2 node(s) didn't match node selector.", [(2, S.SELECTOR)]),
    ("selector", "0/10 nodes are available: 3 node(s) had volume node affinity conflict, 7 node(s) didn't match Pod's node affinity/selector." + PREEMPTION, [(3, S.VOLUME_ELSEWHERE), (7, S.SELECTOR)]),
    ("pod affinity is not node affinity", "0/1 nodes are available: 1 node(s) didn't match pod affinity/anti-affinity rules, 1 node(s) didn't match pod anti-affinity rules.", [(1, S.POD_AFFINITY), (1, S.POD_AFFINITY)]),
    ("cordoned", "0/2 nodes are available: 2 node(s) were unschedulable.", [(2, S.CORDONED)]),
    ("unbound, the plug-in speaks", 'running "VolumeBinding" filter plugin for pod "bert-0": pod has unbound immediate PersistentVolumeClaims', [(None, S.CLAIM_UNBOUND)]),
    ("missing claim, counted", '0/1 nodes are available: 1 persistentvolumeclaim "data" not found.', [(1, S.CLAIM_MISSING)]),
    ("too many pods", "0/1 nodes are available: 1 Too many pods.", [(1, S.RESOURCE)]),
    ("Volcano", "all nodes are unavailable: 3 node(s) resource fit failed.", [(3, S.RESOURCE)]),
    ("Volcano 1.9", "0/4 nodes are unavailable: 4 Insufficient nvidia.com/gpu.", [(4, S.RESOURCE)]),
    ("Volcano, a gang", "pod group is not ready, 2 minAvailable, 1 Pending; Pending: 1 Undetermined", [(None, S.GANG)]),
    ("Volcano, a gang with counts", "6/6 tasks in gang unschedulable: pod group is not ready, 6 Pending, 6 minAvailable; Pending: 6 Unschedulable", [(None, S.GANG)]),
    ("Kueue", "couldn't assign flavors to pod set main: insufficient quota for nvidia.com/gpu in flavor a100, request > maximum capacity (24 > 16)", [(None, S.QUEUE)]),
    ("something new", "the moon is full", [(None, S.OTHER)]),
    ("nothing", "", []),
]  # fmt: skip


@pytest.mark.parametrize(("name", "message", "expect"), MESSAGES, ids=[m[0] for m in MESSAGES])
def test_parts(name: str, message: str, expect: list[tuple[int | None, SchedulerReason]]) -> None:
    assert [(part.nodes, part.reason) for part in parse_scheduler_message(message)] == expect


@given(st.text())
def test_no_message_breaks_it(message: str) -> None:
    parse_scheduler_message(message)
