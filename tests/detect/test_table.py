"""The rules and their causes, as they were asked for. Alerts are routed and silenced by these words."""

from __future__ import annotations

import pytest

from monitor.detect.all import RULES
from monitor.detect.base import Rule

PULLS = (
    "disk-full wrong-architecture rate-limited tls plain-http dns connection-refused timeout connection-broken "
    "too-slow registry-error unauthorized not-found damaged-layer bad-name never-pull unknown"
)
DISK = "images container-layers logs volumes datasets other"
TABLE: dict[str, str | None] = {
    "gpu-zombie": "pod-finished pod-deleted pod-terminating",
    "gpu-idle": "idle-notebook idle-job hung-job waiting-for-data partially-idle",
    "gpu-orphan": "host-process other-container unknown-owner",
    "gpu-ghost": "memory-leak latched-utilisation",
    "gpu-wedged": "d-state zombie-process vanished",
    "gpu-phantom": "stale-allocation terminal-pod",
    "gpu-fault": None,  # one for each class of faults
    "gpu-hot": "thermal power-brake",
    "gpu-underused": "cpu-limit shm-small io-wait data-loading low-batch unknown",
    "gpu-fragmented": "",
    "image-pull": PULLS,
    "image-pull-slow": "large-image slow-registry slow-disk",
    "registry-unreachable": "node-cannot-resolve node-cannot-connect node-does-not-trust registry-down",
    "pod-pending": (
        "no-single-node-fits not-enough-gpus quota queue-closed gang-incomplete taint selector volume priority "
        "overtaken unschedulable-other"
    ),
    "pod-stuck-creating": "mount-failed mount-hung sandbox config-missing device-missing",
    "pod-start-failed": "file-not-found not-executable permission out-of-memory bus-error config",
    "pod-stuck-terminating": "finalizer node-down volume-busy d-state runtime-hung",
    "pod-silent": "never-logged stopped-logging log-unreadable",
    "shm-pressure": "nearly-full default-size",
    "disk-full": DISK,
    "disk-filling": DISK,
    "disk-io-saturated": "",
    "image-cache-large": "growth unused-images build-cache",
    "image-oversize": "",
    "mass-deletion": "",
    "mount-lost": "missing hung read-only stale",
    "node-down": "kubelet-silent disk-pressure memory-pressure network flapping",
    "agent-silent": "node-down agent-down collector-hung collector-failing",
    "capacity-mismatch": "device-plugin unhealthy-device",
    "quota-exhausted": "",
    "service-down": "status refused timeout dns tls read-only component",
}


def test_the_rules_are_those_that_were_asked_for() -> None:
    assert sorted(rule.rule for rule in RULES) == sorted(TABLE)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.rule)
def test_the_causes_are_those_that_were_asked_for(rule: Rule) -> None:
    """`unknown` may be a cause of any rule; a rule without causes may name itself."""
    wanted = TABLE[rule.rule]
    if wanted is None:
        assert rule.causes
        return
    assert set(wanted.split()) - set(rule.causes) == set()
    assert set(rule.causes) - set(wanted.split()) <= {"unknown", rule.rule}
    assert len(set(rule.causes)) == len(rule.causes)
