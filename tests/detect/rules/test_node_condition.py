# ruff: noqa: E501  # a case is a row of a table
"""node-condition: conditions and taints that other tools set on nodes."""

from __future__ import annotations

from typing import Any

import pytest

from monitor.config.rules import RulesConfig
from monitor.detect.base import Limits, RuleContext
from monitor.detect.engine import detect
from monitor.detect.history import DetectionHistory
from monitor.detect.lib.node_conditions import CAUSES, ReportedFault, condition_fault
from monitor.detect.rules import disk_full, gpu_fault, gpu_hot, kernel_fault, node_down
from monitor.detect.rules.node_condition import MAX_FAULTS, RULE
from monitor.detect.rules.node_condition import Limits as ConditionLimits
from monitor.facts.findings import Finding, Severity
from monitor.facts.kernel import KernelEvent, KernelFacts
from monitor.facts.kube import ConditionFact, NodeFact, TaintFact
from monitor.sim import manifests
from tests.cluster.builders import agent as gpu_agent
from tests.cluster.builders import card
from tests.detect.builders_gpu import catalog_problems
from tests.detect.builders_nodes import condition, names, only, rule_context, text
from tests.detect.running import evaluate
from tests.explain.builders import NOW, node
from tests.scorecard.model import Happening, Shape, Tell

MINUTE = 60.0


def marked(*conditions: ConditionFact, **more: Any) -> NodeFact:
    given: dict[str, Any] = {"ready": True, "ready_since": NOW - 9000, "created_at": NOW - 90_000}
    return node("n1", conditions=conditions, **(given | more))


def taint(key: str, value: str | None = None, effect: str = "NoSchedule") -> TaintFact:
    return TaintFact(key=key, value=value, effect=effect, since=NOW - 600)


CONDITIONS: list[tuple[str, ConditionFact, str | None]] = [
    ("an XID, by a custom plugin", condition("GpuXidError", reason="XidErrors", message="Xid 79 on GPU 3"), "gpu-error"),
    ("an XID, by GKE", condition("XidCriticalError"), "gpu-error"),
    ("an XID, by ACK", condition("NodeGPUXIDError"), "gpu-error"),
    ("no XID", condition("GpuXidError", False, reason="NoXidErrors"), None),
    ("NVSentinel: memory", condition("GpuMemWatch", message="ErrorCode:DCGM_FR_VOLATILE_DBE_DETECTED GPU:0"), "gpu-memory"),
    ("NVSentinel: no failure", condition("GpuMemWatch", False, reason="GpuMemWatchIsHealthy", message="No Health Failures"), None),
    ("NVSentinel: another watch", condition("GpuInforomWatch"), "gpu-unhealthy"),
    ("EKS: inverted", condition("AcceleratedHardwareReady", False, reason="NvidiaXID79Error"), "gpu-unhealthy"),
    ("EKS: well", condition("AcceleratedHardwareReady", True, reason="NvidiaGPUIsReady"), None),
    ("EKS: network", condition("NetworkingReady", False, reason="IPAMDNotReady"), "network"),
    ("EKS: storage", condition("StorageReady", False), "filesystem"),
    ("EKS: kernel", condition("KernelReady", False), "kernel"),
    ("EKS: runtime", condition("ContainerRuntimeReady", False), "runtime"),
    ("AKS: missing GPU", condition("GPUMissing"), "gpu-missing"),
    ("AKS: InfiniBand", condition("IBLinkFlapping"), "gpu-link"),
    ("AKS: maintenance", condition("VMEventScheduled"), "maintenance"),
    ("ModelArts: lost card", condition("NT_NPU_CARD_LOSE", reason="os_task_name:npu-card-lose"), "gpu-missing"),
    ("ModelArts: well", condition("NT_NPU_CARD_LOSE", False, message="ok"), None),
    ("ModelArts: a check that the table lacks", condition("NT_OTHER_CHECK"), "reported"),
    ("node-problem-detector: deadlock", condition("KernelDeadlock", reason="DockerHung"), "kernel"),
    ("node-problem-detector: none", condition("KernelDeadlock", False, reason="KernelHasNoDeadlock"), None),
    ("node-problem-detector: read-only", condition("ReadonlyFilesystem"), "filesystem"),
    ("node-problem-detector: kubelet", condition("FrequentKubeletRestart"), "kubelet"),
    ("node-problem-detector: runtime", condition("FrequentContainerdRestart"), "runtime"),
    ("node-problem-detector: overlay", condition("CorruptDockerOverlay2"), "filesystem"),
    ("ACK: process ids", condition("NodePIDPressure"), "processes"),
    ("ACK: inodes", condition("InodesPressure"), "inodes"),
    ("ACK: runtime", condition("RuntimeOffline"), "runtime"),
    ("ACK: clock", condition("NTPProblem"), "clock"),
    ("ACK: enough addresses", condition("SufficientIP", True), None),
    ("unknown, and the name says that True is a fault", condition("RackSwitchUnhealthy"), "reported"),
    ("unknown, and its reason denies the fault", condition("RackSwitchProblem", reason="NoRackSwitchProblem"), None),
    ("unknown, and the name says that False is a fault", condition("CalicoHealthy", False), "reported"),
    ("unknown, and well", condition("CalicoHealthy", True), None),
    ("unknown, and the name says nothing", condition("RebootRequested"), None),
    ("unknown, and False", condition("UpdateAvailable", False), None),
    ("unknown status", condition("KernelDeadlock", None), None),
    ("a member of etcd", condition("EtcdIsVoter", True), None),
    ("no member of etcd", condition("EtcdIsVoter", False, reason="NotAMember"), None),
    *[(f"{kind}, which node-down reports", condition(kind), None) for kind in ("DiskPressure", "MemoryPressure", "PIDPressure", "NetworkUnavailable")],
]  # fmt: skip


@pytest.mark.parametrize(("name", "given", "cause"), CONDITIONS, ids=names(CONDITIONS))
def test_a_condition(name: str, given: ConditionFact, cause: str | None) -> None:
    detected = evaluate(RULE, rule_context(RULE, nodes=[marked(given)]))
    if cause is None:
        assert detected.findings == ()
        return
    finding = only(detected)
    assert (finding.cause, finding.labels) == (cause, {"node": "n1", "condition": given.type})
    assert finding.since == NOW - 600
    assert given.message is None or given.message in text(finding)
    assert "节点 n1" in text(finding, "zh")


TAINTS: list[tuple[str, TaintFact, str | None]] = [
    ("NVSentinel", taint("AggregatedNodeHealth", "False"), "isolated"),
    ("NVSentinel, by kind", taint("nvidia.com/gpu-xid-error", "true"), "isolated"),
    ("ACS", taint("alibabacloud.com/node-anomaly"), "isolated"),
    ("ModelArts: code in the value", taint("os.modelarts.node/fault", "A050101"), "isolated"),
    ("ModelArts: code in the key", taint("os.modelarts.node/A050102"), "isolated"),
    ("ModelArts: something else", taint("os.modelarts.node/xpu.type", "gpu"), None),
    ("GKE is about to stop it", taint("cloud.google.com/impending-node-termination"), "maintenance"),
    ("only a preference", taint("AggregatedNodeHealth", "False", "PreferNoSchedule"), None),
    ("dedicated GPUs", taint("nvidia.com/gpu", "present"), None),
    ("the control plane", taint("node-role.kubernetes.io/control-plane"), None),
    ("Kubernetes itself", taint("node.kubernetes.io/unschedulable"), None),
    ("a user's", taint("team", "a"), None),
]  # fmt: skip


@pytest.mark.parametrize(("name", "given", "cause"), TAINTS, ids=names(TAINTS))
def test_a_taint(name: str, given: TaintFact, cause: str | None) -> None:
    detected = evaluate(RULE, rule_context(RULE, nodes=[marked(taints=(given,))]))
    assert [finding.cause for finding in detected.findings] == ([cause] if cause else [])
    if cause:
        assert given.key in text(only(detected))
        assert "污点" in text(only(detected), "zh")


def test_a_taint_follows_from_a_condition() -> None:
    both = marked(condition("GpuMemWatch"), taints=(taint("AggregatedNodeHealth", "False"),))
    isolated, memory = evaluate(RULE, rule_context(RULE, nodes=[both])).findings
    assert (memory.cause, memory.explained_by, memory.severity) == ("gpu-memory", None, Severity.CRITICAL)
    assert (isolated.cause, isolated.explained_by) == ("isolated", memory.key)


def test_several_conditions_are_several_findings_within_a_bound() -> None:
    many = [condition(f"Part{number}Unhealthy") for number in range(MAX_FAULTS)]
    found = evaluate(RULE, rule_context(RULE, nodes=[marked(*many, condition("GPUMissing"))])).findings
    assert len(found) == MAX_FAULTS
    assert "gpu-missing" in {finding.cause for finding in found}


def test_a_condition_has_to_last() -> None:
    context = rule_context(RULE, nodes=[marked(condition("KernelDeadlock", since=NOW - 59))])
    assert evaluate(RULE, context).findings == ()


def test_a_condition_without_a_time_lasts_since_it_was_seen() -> None:
    context = rule_context(RULE, nodes=[marked(condition("KernelDeadlock", since=None))])
    first = evaluate(RULE, context)
    assert (first.findings, first.memory) == ((), {"n1": {"KernelDeadlock": NOW}})
    assert only(evaluate(RULE, context, {"n1": {"KernelDeadlock": NOW - 61}})).since == NOW - 61


def test_a_node_that_is_deleted_is_not_reported() -> None:
    assert (
        evaluate(RULE, rule_context(RULE, nodes=[marked(condition("KernelDeadlock"), deletion_at=NOW)])).findings == ()
    )


def test_settings() -> None:
    given = {
        "ignored": ["NTP*"],
        "conditions": {"RackPower=False": "reported", "KernelDeadlock=False": "kernel"},
        "taints": ["acme/*"],
    }
    limits = RulesConfig.model_validate({"node_condition": given}).limits()[RULE.rule]
    assert isinstance(limits.default, ConditionLimits)
    marks = (
        condition("NTPProblem"),
        condition("RackPower", False),
        condition("KernelDeadlock"),
        condition("RebootRequested"),
    )
    found = evaluate(
        RULE, rule_context(RULE, limits=limits, nodes=[marked(*marks, taints=(taint("acme/broken"),))])
    ).findings
    assert [(finding.cause, finding.labels["condition"]) for finding in found] == [
        ("reported", "RackPower"),
        ("isolated", "acme/broken"),
    ]


def test_a_setting_with_an_unknown_cause_is_refused() -> None:
    with pytest.raises(ValueError, match=r"node_condition.conditions.RackPower=False"):
        RulesConfig.model_validate({"node_condition": {"conditions": {"RackPower=False": "power"}}})


def test_the_fault_quotes_reason_and_message() -> None:
    given = condition("GPUMissing", reason="CountMismatch", message="7 of 8")
    assert condition_fault(given, {}) == ReportedFault("GPUMissing", "gpu-missing", "CountMismatch: 7 of 8", NOW - 600)


def both_say(rule: Any, given: NodeFact, agent: Any) -> dict[str, Finding]:
    """Findings by rule where the facts of the agent and a condition say the same."""
    context: RuleContext = rule_context(RULE, nodes=[given], agents=(agent,))
    rules = (rule, RULE)
    found = detect(rules, {one.rule: Limits(one.limits()) for one in rules}, context, DetectionHistory())
    return {finding.rule: finding for finding in found.findings}


def kernel_agent(kind: str) -> Any:
    line = KernelEvent(kind=kind, since=NOW - 60, at=NOW - 60, count=9, device="sda", message="simulated")
    return gpu_agent(card(), kernel=KernelFacts(recent=(line,)))


SAME: list[tuple[str, Any, str, Any, bool]] = [
    ("the GPU is lost", gpu_fault.RULE, "GPUMissing", gpu_agent(card(lost=True)), True),
    ("a lost GPU says nothing of the clock", gpu_fault.RULE, "NTPProblem", gpu_agent(card(lost=True)), False),
    ("a task hangs", kernel_fault.RULE, "KernelDeadlock", kernel_agent("hung-task"), True),
    ("a hung task says nothing of the file system", kernel_fault.RULE, "ReadonlyFilesystem", kernel_agent("hung-task"), False),
]  # fmt: skip


@pytest.mark.parametrize(("name", "rule", "kind", "agent", "same"), SAME, ids=names(SAME))
def test_what_our_own_finding_says_is_not_said_twice(name: str, rule: Any, kind: str, agent: Any, same: bool) -> None:
    found = both_say(rule, marked(condition(kind)), agent)
    assert found["node-condition"].explained_by == (found[rule.rule].key if same else None)


def test_a_node_that_is_down_explains_its_conditions() -> None:
    down = marked(condition("KernelDeadlock"), ready=None, ready_since=NOW - 600)
    found = both_say(node_down.RULE, down, gpu_agent(card()))
    assert found["node-condition"].explained_by == found["node-down"].key


def test_the_rules_that_say_the_same_are_named() -> None:
    assert {gpu_fault.RULE.rule, gpu_hot.RULE.rule, disk_full.RULE.rule, node_down.RULE.rule} <= set(RULE.suppressed_by)


def test_words() -> None:
    assert catalog_problems(RULE) == []
    assert len(CAUSES) == len(set(CAUSES))


def _condition(kind: str, status: str) -> Any:
    def act(it: Happening) -> Any:
        entry = {"type": kind, "status": status, "reason": "Simulated", "lastTransitionTime": manifests.rfc3339(it.now)}
        it.scene.renew_node(it.node.name, conditions=(entry,))
        yield None
        it.scene.renew_node(it.node.name)

    return act


def _shape(name: str, cause: str, kind: str, status: str) -> Shape:
    labels = {"node": "{node}", "condition": kind}
    return Shape(name, (), 10 * MINUTE, _condition(kind, status), (Tell(RULE.rule, cause, labels),))


SHAPES = (
    _shape("another tool reports an XID", "gpu-error", "GpuXidError", "True"),
    _shape("EKS reports broken hardware", "gpu-unhealthy", "AcceleratedHardwareReady", "False"),
)
