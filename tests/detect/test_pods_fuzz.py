"""No event, status or snapshot makes a pod rule raise or produce an overlong label."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from monitor.detect.base import Rule
from monitor.detect.rules import (
    image_pull,
    image_pull_slow,
    pod_pending,
    pod_silent,
    pod_start_failed,
    pod_stuck_creating,
    pod_stuck_terminating,
    quota_exhausted,
    registry_unreachable,
)
from monitor.facts.kube import ContainerStatusFact, PodContainerFact, PodFact, TerminationFact
from monitor.facts.storage import ProbeFact
from monitor.facts.workload import LogFact
from tests.detect.builders_pods import run
from tests.explain.builders import GPU, NOW, agent, event, node, pod

RULES = [
    module.RULE
    for module in (
        image_pull,
        image_pull_slow,
        pod_pending,
        pod_silent,
        pod_start_failed,
        pod_stuck_creating,
        pod_stuck_terminating,
        quota_exhausted,
        registry_unreachable,
    )
]
WORDS = st.one_of(
    st.none(),
    st.text(max_size=400),
    st.sampled_from(
        [
            'Pulling image "x"',
            'Successfully pulled image "x" in 0s. Image size: 9000000000 bytes.',
            "Failed to pull image",
            "no such host",
            "exceeded quota: q, requested: requests.nvidia.com/gpu=x, used: a=b, limited: c=d",
        ]
    ),
)
TIMES = st.one_of(st.none(), st.sampled_from([NOW - 9000, NOW - 301, NOW, NOW + 9000, 0.0]))
FAILING = ("ErrImagePull", "ImagePullBackOff", "CrashLoopBackOff", "RunContainerError", "CreateContainerConfigError")
REASONS = st.sampled_from([*FAILING, "ContainerCreating", "PodInitializing", "OOMKilled", "StartError", "Odd", None])
EVENTS = st.builds(
    event,
    st.sampled_from(
        ["Pulling", "Pulled", "Failed", "FailedMount", "FailedCreatePodSandBox", "FailedCreate", "Killing"]
    ),
    WORDS,
    last_at=TIMES,
    container=st.sampled_from([None, "main"]),
    uid=st.uuids().map(str),
)
STATUSES = st.builds(
    ContainerStatusFact,
    name=st.just("main"),
    init=st.booleans(),
    state=st.sampled_from([None, "waiting", "running", "terminated"]),
    reason=REASONS,
    message=WORDS,
    exit_code=st.sampled_from([None, 0, 1, 127, 137, -1, 300]),
    started_at=TIMES,
    finished_at=TIMES,
    container_id=st.sampled_from([None, "c"]),
    last=st.one_of(
        st.none(), st.builds(TerminationFact, exit_code=st.integers(-1, 300), message=WORDS, reason=REASONS)
    ),
)
PODS = st.builds(
    pod,
    node=st.sampled_from([None, "n1", "gone"]),
    gpus=st.sampled_from([0, 1, 99]),
    phase=st.sampled_from([None, "Pending", "Running", "Failed", "Succeeded", "Odd"]),
    created_at=TIMES,
    started_at=TIMES,
    deletion_at=TIMES,
    statuses=st.lists(STATUSES, max_size=2).map(tuple),
    containers=st.builds(lambda image: (PodContainerFact(name="main", image=image, limits={GPU: 1.0}),), WORDS),
)
LOGS = st.builds(
    LogFact, container_id=st.just("c"), size_bytes=st.sampled_from([None, 0, 5]), written_at=TIMES, error=WORDS
)
PROBES = st.builds(ProbeFact, target=st.text(max_size=300), ok=st.booleans(), at=st.just(NOW), stage=WORDS, cause=WORDS)
MEMORY = st.one_of(st.none(), st.dictionaries(st.text(max_size=5), st.none() | st.integers(), max_size=2))


@pytest.mark.parametrize("rule", RULES, ids=[rule.rule for rule in RULES])
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_never_raises(rule: Rule, data: Any) -> None:
    waits: PodFact = data.draw(PODS)
    facts = agent("n1", logs=(data.draw(LOGS),), probes=(data.draw(PROBES),))
    events = data.draw(st.lists(EVENTS, max_size=4))
    garbage = data.draw(MEMORY)
    memory = {"": garbage, waits.uid: garbage}  # of a rule about the cluster, or about the pod
    run(rule, memory=memory, pods=[waits], events=events, nodes=[node("n1")], agents=[facts])
