"""kernel-fault: what the kernel log says about hardware, storage and memory of a node."""

from __future__ import annotations

from typing import Any

import pytest

from monitor.detect.base import Threshold
from monitor.detect.engine import Engine, detect
from monitor.detect.history import DetectionHistory
from monitor.detect.rules import RULES
from monitor.detect.rules.kernel_fault import CAUSES, RULE, SEVERITIES, Limits
from monitor.facts import CollectorFact, DiskIoFact, MountFact, XidEvent, XidFacts
from monitor.facts.agents import AgentFact
from monitor.facts.findings import Finding
from monitor.facts.kernel import KernelEvent, KernelEventKind, KernelFacts
from monitor.facts.kube import ContainerStatusFact, TerminationFact
from monitor.i18n.en import FINDINGS
from tests.cluster.builders import NOW, agent, card, pod, uuid
from tests.detect.builders_gpu import after_silence, catalog_problems, causes, rule_context, run, said
from tests.detect.builders_storage import nas
from tests.scorecard.model import Happening, Shape, Tell

HOUR = 3600.0
PCI = "0000:3b:00.0"


def event(kind: str, ago: float = 60, count: int = 1, **fields: Any) -> KernelEvent:
    return KernelEvent(kind=kind, since=NOW - ago, at=NOW - ago, count=count, **({"message": "the line"} | fields))


def node_with(*events: KernelEvent, **fields: Any) -> AgentFact:
    return agent(card(pci_bus_id=PCI), kernel=KernelFacts(recent=events), **fields)


CASES: tuple[tuple[str, tuple[KernelEvent, ...], list[str]], ...] = (
    ("nothing", (), []),
    ("an uncorrectable memory error", (event("hardware-uncorrected"),), ["memory-error"]),
    ("corrected memory errors", (event("hardware-corrected", count=10),), ["memory-corrected"]),
    ("few corrected memory errors", (event("hardware-corrected", count=9),), []),
    ("an uncorrectable PCIe error", (event("pcie-uncorrected", device="0000:00:03.0"),), ["pcie-error"]),
    ("corrected PCIe errors", (event("pcie-corrected", count=100),), ["pcie-corrected"]),
    ("few corrected PCIe errors", (event("pcie-corrected", count=99),), []),
    ("I/O errors", (event("disk-error", count=3, device="sda"),), ["disk-error"]),
    ("I/O errors in several events", (event("disk-error", 600, 2, device="sda"), event("disk-error", device="sda")),
     ["disk-error"]),
    ("I/O errors of different disks", (event("disk-error", count=2, device="sda"), event("disk-error", device="sdb")),
     []),
    ("I/O errors over a long time",
     (event("disk-error", HOUR, 2, device="sda"), event("disk-error", device="sda")), []),
    ("a damaged filesystem", (event("filesystem-error", device="sda1"),), ["filesystem-error"]),
    ("a read-only filesystem", (event("filesystem-read-only", device="sda1"),), ["filesystem-read-only"]),
    ("the worst of a filesystem", (event("filesystem-error", device="sda1"),
                                   event("filesystem-read-only", device="sda1")), ["filesystem-read-only"]),
    ("an NFS server", (event("nfs-not-responding", device="nas.lab"),), ["nfs-not-responding"]),
    ("an NFS server that recovered",
     (event("nfs-not-responding", device="nas.lab"), event("nfs-recovered", 30, device="nas.lab")), []),
    ("an NFS server that failed again",
     (event("nfs-recovered", 90, device="nas.lab"), event("nfs-not-responding", device="nas.lab")),
     ["nfs-not-responding"]),
    ("another NFS server recovered",
     (event("nfs-not-responding", device="nas.lab"), event("nfs-recovered", 30, device="other")),
     ["nfs-not-responding"]),
    ("a blocked task", (event("hung-task", device="python"),), ["hung-task"]),
    ("a task that was blocked", (event("hung-task", 900, device="python"),), []),
    ("a stuck CPU", (event("lockup", device="CPU#3"),), ["cpu-lockup"]),
    ("a switch, by its class", (event("nvswitch", code=12020),), ["nvswitch-reboot"]),
    ("a switch, by its line", (event("nvswitch", code=22013, fatal=True),), ["nvswitch-reset"]),
    ("a switch that goes on", (event("nvswitch", code=22013, fatal=False),), []),
    ("a switch that goes on with many errors", (event("nvswitch", count=10, code=22013),), ["nvswitch-harmless"]),
    ("a switch with a new code", (event("nvswitch", code=99999),), ["nvswitch-vendor"]),
    ("the node has no memory left", (event("node-oom", device="python"),), ["node-out-of-memory"]),
    ("a container has no memory left", (event("container-oom", container_id="c1"),), ["container-out-of-memory"]),
    ("GPUs are another rule's", (event("gpu-init", device=PCI), event("gpu-lost", device=PCI)), []),
    ("a kind of a newer agent", (event("quantum-error"),), []),
    ("several of a node are one finding", (event("hung-task"), event("hardware-uncorrected"), event("node-oom")),
     ["memory-error"]),
)  # fmt: skip


@pytest.mark.parametrize(("name", "events", "expect"), CASES, ids=[case[0] for case in CASES])
def test_fault(name: str, events: tuple[KernelEvent, ...], expect: list[str]) -> None:
    found = run(RULE, rule_context(node_with(*events)))
    assert causes(found) == [(SEVERITIES[cause].value, cause) for cause in expect]


def test_every_cause_and_kind_is_covered() -> None:
    assert {cause for _, _, expect in CASES for cause in expect} == set(CAUSES)
    assert {item.kind for _, events, _ in CASES for item in events} >= {*KernelEventKind}


def test_thresholds_are_configuration() -> None:
    given = rule_context(node_with(event("disk-error", 700, 3, device="sda")))
    assert len(run(RULE, given, None, Limits(disk_error=Threshold(4, HOUR))).findings) == 0
    assert len(run(RULE, given, None, Limits(disk_error=Threshold(3, 700.0))).findings) == 0
    assert len(run(RULE, given, None, Limits(disk_error=Threshold(3, 701.0))).findings) == 1
    assert run(RULE, given, None, None, n1=Limits(disk_error=Threshold(99, HOUR))).findings == ()


def test_when_time_alone_ends_it() -> None:
    for after, expect in ((0.0, 800.0), (801.0, 850.0), (851.0, None)):  # the number in the text changes first
        engine = Engine((RULE,), {})
        given = node_with(event("hung-task", 100), event("hung-task", 50), received_at=NOW + after)
        engine.evaluate(rule_context(given, now=NOW + after))
        assert engine.next_at == (None if expect is None else NOW + expect)


def only(*events: KernelEvent, pods: Any = (), **fields: Any) -> Finding:
    (finding,) = run(RULE, rule_context(node_with(*events, **fields), pods=pods)).findings
    return finding


def disk_io(device: str, *mounts: str) -> DiskIoFact:
    return DiskIoFact(
        device=device, read_bytes_total=0, written_bytes_total=0, reads_total=0, writes_total=0, busy_seconds_total=0.0,
        queue_seconds_total=0.0, mounts=mounts,
    )  # fmt: skip


DEVICES = (
    ("the disk itself", "sda", "sda", "/data"),
    ("a partition", "sda", "sda1", "/data"),
    ("a partition of an NVMe disk", "nvme0n1", "nvme0n1p2", "/data"),
    ("a partition of a controller's disk", "nvme0", "nvme0n1p2", "/data"),
    ("another disk", "sda", "sdab", "sda"),
    ("another controller", "nvme1", "nvme11n1", "nvme1"),
    ("a logical volume", "dm-1", "dm-12", "dm-1"),
)


@pytest.mark.parametrize(("name", "device", "known", "mount"), DEVICES, ids=[case[0] for case in DEVICES])
def test_the_mount_of_a_disk(name: str, device: str, known: str, mount: str) -> None:
    finding = only(event("disk-error", count=3, device=device), disk_io=(disk_io(known, "/data"),))
    assert finding.labels == {"node": "n1", "mount": mount}


def test_the_mounts_of_a_server_first_those_that_are_expected() -> None:
    disks = (nas(mount="/a", device="nas.lab:/a"), nas(mount="/b", device="nas.lab:/b"), nas(device="other:/x"))
    line = event("nfs-not-responding", device="nas.lab")
    assert only(line, disk=disks).labels == {"node": "n1", "mount": "/a"}
    expected = (MountFact(path="/b", state="ok", since=NOW),)
    assert only(line, disk=disks, mounts=expected).labels == {"node": "n1", "mount": "/b"}


def test_errors_of_a_gpus_slot_are_the_gpus() -> None:
    assert only(event("pcie-uncorrected", device=PCI)).labels == {"node": "n1", "gpu": "0"}
    assert only(event("pcie-uncorrected", device="0000:00:03.0")).labels == {"node": "n1"}


def killed(**fields: Any) -> KernelEvent:
    return event("container-oom", device="python3", container_id="c1", pod_uid="uid-train", **fields)


def status(**fields: Any) -> ContainerStatusFact:
    return ContainerStatusFact(name="main", container_id="c1", state="running", **fields)


def test_the_container_that_exceeded_its_limit() -> None:
    finding = only(killed(), pods=(pod("train", statuses=(status(),)),))
    assert finding.labels == {"node": "n1", "pod": "train", "namespace": "team", "container": "main"}
    assert "Container main of team/train on n1" in said(finding)
    assert "n1 上 team/train 的容器 main 超出内存限额" in said(finding, "zh")
    unknown = only(killed())
    assert unknown.labels == {"node": "n1", "pod": "uid-train", "container": "c1"}


def test_a_kill_that_kubernetes_knows_is_the_rule_about_pods() -> None:
    for end in (status(last=TerminationFact(reason="OOMKilled")), status(reason="OOMKilled")):
        given = rule_context(node_with(killed()), pods=(pod("train", statuses=(end,)),))
        assert run(RULE, given).findings == ()


def test_what_it_says() -> None:
    finding = only(
        event("disk-error", 300, 4, device="sda", message="I/O error, dev sda, sector 1"),
        event("filesystem-error", device="sda", message="EXT4-fs error (device sda)"),
        disk_io=(disk_io("sda", "/data"),),
    )
    assert finding.since == NOW - 300
    for part in (
        "Disk sda of n1 had 4 I/O errors (/data)",
        "sector 1",
        "EXT4-fs error",
        "smartctl -a /dev/sda",
        "fsck",
    ):
        assert part in said(finding)
    assert "n1 的磁盘 sda 出现 4 个 I/O 错误（/data）" in said(finding, "zh")
    assert finding.raw == "I/O error, dev sda, sector 1; EXT4-fs error (device sda)"


def test_the_nodes_clock_is_an_hour_behind() -> None:
    behind = node_with(event("hung-task", HOUR + 60), received_at=NOW - 1, at=NOW - HOUR)
    assert causes(run(RULE, rule_context(behind))) == [("warning", "hung-task")]


def all_rules(given: Any) -> dict[str, str | None]:
    found = detect(RULES, {}, given, DetectionHistory())
    return {f"{finding.rule}/{finding.cause}": finding.explained_by for finding in found.findings}


def test_a_lost_mount_explains_its_server() -> None:
    lost = (MountFact(path="/nas", state="hung", since=NOW - 60),)
    given = node_with(event("nfs-not-responding", device="nas"), disk=(nas(),), mounts=lost)
    found = all_rules(rule_context(given))
    assert found["kernel-fault/nfs-not-responding"] == "mount-lost|mount=/nas|node=n1"
    assert found["mount-lost/hung"] is None


def test_a_server_that_several_nodes_miss_is_one_finding() -> None:
    line = event("nfs-not-responding", device="nas")
    agents = [
        agent(card(), node=f"n{number}", kernel=KernelFacts(recent=(line,)), disk=(nas(),)) for number in range(1, 4)
    ]
    assert len(run(RULE, rule_context(*agents[:2])).findings) == 2
    found = detect((RULE,), {}, rule_context(*agents), DetectionHistory()).findings
    server = next(finding for finding in found if "node" not in finding.labels)
    assert server.labels == {"mount": "/nas", "service": "nas"}
    assert [finding.explained_by for finding in found if finding is not server] == [server.key] * 3
    assert server.explained_by is None
    assert "NFS server nas does not respond to 3 nodes (/nas)" in said(server)
    assert "NFS 服务器 nas 对 3 个节点没有响应" in said(server, "zh")


def test_a_broken_gpu_explains_its_slot() -> None:
    xid = XidFacts(recent=(XidEvent(at=NOW - 60, code=79, source="kernel", gpu_uuid=uuid(0)),))
    found = all_rules(rule_context(node_with(event("pcie-uncorrected", device=PCI), xid=xid)))
    assert found["kernel-fault/pcie-error"] == "gpu-fault|gpu=0|node=n1"


def test_a_switch_explains_the_links_of_gpus() -> None:
    xid = XidFacts(recent=(XidEvent(at=NOW - 60, code=74, source="kernel", gpu_uuid=uuid(0)),))
    found = all_rules(rule_context(node_with(event("nvswitch", code=12001, fatal=True), xid=xid)))
    assert found["gpu-fault/xid-nvlink"] == "kernel-fault|node=n1"
    assert found["kernel-fault/nvswitch-reset"] is None


def test_held_while_the_log_cannot_be_read() -> None:
    failing = CollectorFact(name="kernel", outcome="failed", interval_seconds=5, message="denied")
    before = rule_context(node_with(event("lockup")))
    (finding,) = after_silence(RULE, before, rule_context(agent(card(), collectors=(failing,))))
    assert (finding.held, finding.cause) == (True, "cpu-lockup")
    assert after_silence(RULE, before, rule_context(node_with())) == ()


def test_an_old_agent_sends_no_kernel_events() -> None:
    assert run(RULE, rule_context(agent(card()))).findings == ()


def test_every_cause_has_advice() -> None:
    assert [cause for cause in CAUSES if f"kernel-fault.{cause}.advice" not in FINDINGS] == []


def test_words() -> None:
    assert catalog_problems(RULE) == []


def _logged(kind: str, count: int = 1, device: str = "sdz") -> Any:
    def act(it: Happening) -> Any:
        line = KernelEvent(kind=kind, since=it.now, at=it.now, count=count, device=device, message="simulated")
        it.node.kernel_events.append(line)
        yield None

    return act


def _shape(name: str, cause: str, act: Any, labels: dict[str, str] | None = None) -> Shape:
    return Shape(name, (), 10 * 60.0, act, (Tell("kernel-fault", cause, labels or {"node": "{node}"}),))


SHAPES = (
    _shape("task blocked", "hung-task", _logged("hung-task", device="python")),
    _shape("CPU stuck", "cpu-lockup", _logged("lockup", device="CPU#3")),
    _shape("disk errors", "disk-error", _logged("disk-error", 5), {"node": "{node}", "mount": "sdz"}),
)
