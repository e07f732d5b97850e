"""Failures of real components: each has its cause in the alert a few seconds after Kubernetes reports it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.detect.builders_pods import text
from tests.e2e.detecting import Looker, looking
from tests.e2e.real_failures import EVERYWHERE, MODERN, RealFailure, dead_mirror
from tests.lab.lab import Lab

DIAGNOSIS_SECONDS = 60.0  # generous: other tests may occupy the machine


@pytest.fixture(scope="module")
def looker(lab: Lab) -> Iterator[Looker]:
    with looking(lab.kubeconfig) as looker:
        yield looker


@pytest.mark.parametrize(
    "failure",
    [
        *(pytest.param(failure, id=failure.name) for failure in EVERYWHERE),
        *(pytest.param(failure, id=failure.name, marks=pytest.mark.lab("1.35")) for failure in MODERN),
    ],
)
def test_the_alert_names_the_cause(
    lab: Lab, looker: Looker, pods: list[Any], undo: ExitStack, tmp_path: Path, failure: RealFailure
) -> None:
    fields = failure.prepare(lab, undo, tmp_path)
    pods.append(lab.run_pod(f"real-{failure.name}", phase=None, **fields))
    finding = looker.expect(failure.rule, failure.cause, failure.within_seconds, pod=f"real-{failure.name}")
    seen = time.time()
    print(f"{failure.name}: {finding.raw}")
    assert finding.since is not None
    assert seen - finding.since < DIAGNOSIS_SECONDS
    assert finding.raw
    assert failure.says in text(finding)
    assert fields.get("image", "") in text(finding)


@pytest.mark.lab("1.35")
def test_a_dead_mirror_of_a_working_registry(lab: Lab, looker: Looker, pods: list[Any], undo: ExitStack) -> None:
    undo.enter_context(dead_mirror(lab, lab.registry))
    pods.append(lab.run_pod("real-fallback", image=lab.push_image("team/mirrored:1")))
    assert looker.finds("image-pull", pod="real-fallback") == []
