"""Which labels identify the subject of a finding. All others may appear, change and vanish."""

from __future__ import annotations

import pytest

from monitor.detect.rules import RULES
from monitor.facts import alert_identity
from monitor.facts.alert_identity import identifying_labels
from monitor.facts.findings import LABELS, Finding, Severity
from monitor.facts.text import Text

POD = {"node": "n1", "namespace": "ml", "pod": "p", "user": "li", "job": "train", "queue": "batch"}
GPU = POD | {"gpu": "3"}


@pytest.mark.parametrize(
    ("rule", "labels", "expect"),
    [
        pytest.param("disk-full", {"node": "n1", "mount": "/data"}, "node mount", id="a mount of a node"),
        pytest.param("node-condition", {"node": "n1", "condition": "X"}, "node condition", id="a condition"),
        pytest.param("shm-pressure", POD, "namespace pod", id="a pod is what it is on any node, of any owner"),
        pytest.param(
            "shm-pressure", {"node": "n1", "container": "c", "user": "li"}, "node container", id="without a pod"
        ),
        pytest.param("pod-start-failed", POD | {"container": "c"}, "namespace pod container", id="a container"),
        pytest.param(
            "image-pull", POD | {"image": "i", "service": "registry"}, "namespace pod image", id="an image of a pod"
        ),
        pytest.param("pod-stuck-creating", POD | {"mount": "/nas"}, "namespace pod", id="the mount is why"),
        pytest.param("gpu-wedged", GPU, "node gpu", id="a GPU is what it is, whoever holds it"),
        pytest.param("gpu-wedged", {"node": "n1", "gpu": "3"}, "node gpu", id="without a holder"),
        pytest.param("gpu-wedged", GPU | {"container": "c"}, "node gpu", id="nor in which container"),
        pytest.param("gpu-zombie", GPU, "node gpu namespace pod", id="each ended pod on a GPU"),
        pytest.param("gpu-zombie", {"node": "n1", "gpu": "3"}, "node gpu", id="an unknown one"),
        pytest.param("gpu-idle", GPU, "node gpu", id="an idle GPU"),
        pytest.param("gpu-idle", POD, "namespace job", id="a job"),
        pytest.param("gpu-idle", {"namespace": "ml", "pod": "p", "user": "li"}, "namespace pod", id="no job"),
        pytest.param("gpu-idle", {"namespace": "ml", "user": "li"}, "namespace user", id="a service without a job"),
        pytest.param("gpu-fragmented", POD, "namespace job", id="a job of one pod"),
        pytest.param("gpu-fragmented", {"namespace": "ml", "pod": "p"}, "namespace pod", id="a pod without a job"),
        pytest.param(
            "pod-pending", {"namespace": "ml", "job": "train", "user": "li", "queue": "q"}, "namespace job", id="waits"
        ),
        pytest.param("quota-exhausted", {"queue": "batch"}, "queue", id="a queue can be the subject"),
        pytest.param("quota-exhausted", {"namespace": "ml"}, "namespace", id="a namespace, too"),
        pytest.param("shm-pressure", POD | {"cluster": "east"}, "cluster namespace pod", id="of another cluster"),
        pytest.param("SomebodyElses", {"node": "n1", "queue": "q"}, "node", id="from elsewhere"),
    ],
)  # fmt: skip
def test_identifying_labels(rule: str, labels: dict[str, str], expect: str) -> None:
    assert identifying_labels(rule, labels) == {name: labels[name] for name in expect.split()}


def test_the_key_has_the_rule_and_the_subject() -> None:
    finding = Finding(rule="gpu-hot", severity=Severity.WARNING, cause="x", labels=GPU, headline=Text(key="x"))
    assert finding.key == "gpu-hot|gpu=3|node=n1"


def test_exceptions_are_about_existing_rules_and_labels() -> None:
    exceptions = alert_identity._SUBJECTS_OF_RULE
    assert exceptions.keys() <= {rule.rule for rule in RULES}
    assert {name for subjects in exceptions.values() for names in subjects for name in names} <= set(LABELS)
