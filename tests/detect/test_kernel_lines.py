"""Lines of the kernel log in, texts of alerts out: through the agent's collectors, the wire format and all rules."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from monitor.agent.collectors.kernel import KernelCollector
from monitor.agent.collectors.xid import XidCollector
from monitor.agent.gpu import DriverMissingError
from monitor.agent.kernel.lines import FRAGMENTS
from monitor.agent.kmsg import KernelLog, SharedKernelLog
from monitor.detect.engine import detect
from monitor.detect.history import DetectionHistory
from monitor.detect.rules import RULES
from monitor.facts.findings import Finding
from monitor.facts.node import NodeSnapshot
from tests.cluster.builders import NOW, agent, card
from tests.detect.builders_gpu import rule_context, said
from tests.support.clock import FakeClock

XID = "NVRM: Xid (PCI:0000:3b:00): "
CGROUP = "/docker/65a1b6ad09655b3f1475ede1aa0061a97c0d1ada9f2b2acac959afbc92094463"


class NoDriver:
    """The events of a node whose driver is not loaded."""

    gpus: tuple[Any, ...] = ()

    def drain(self) -> list[Any]:
        raise DriverMissingError("no NVIDIA driver on this node")


def found(tmp_path: Path, *lines: str) -> tuple[Finding, ...]:
    path, clock = tmp_path / "kmsg", FakeClock(NOW)
    path.write_text("".join(f"3,{n},{9_900_000_000 + n},-;{line}\n" for n, line in enumerate(lines)))
    log = SharedKernelLog(KernelLog(str(path), FRAGMENTS, NOW - 10_000, clock))
    xid, kernel = XidCollector(log, clock, events=NoDriver()), KernelCollector(log)
    sent = agent(card(pci_bus_id="0000:3b:00.0"), xid=xid.collect(), kernel=kernel.collect())
    received = msgspec.json.decode(msgspec.json.encode(sent.snapshot), type=NodeSnapshot)
    context = rule_context(msgspec.structs.replace(sent, snapshot=received))
    return detect(RULES, {}, context, DetectionHistory()).findings


# Lines, rule and cause, what the English and the Chinese text have to say, and what they must not say.
CASES: tuple[tuple[str, tuple[str, ...], str, tuple[str, ...], tuple[str, ...], tuple[str, ...]], ...] = (
    ("XID 109 needs a reset",
     (XID + "109, pid=7, name=python, Ch 00000008, errorString CTX SWITCH TIMEOUT, Info 0x2c014",),
     "gpu-fault/xid-reset",
     ("GPU 0 on n1", "XID 109", "nvidia-smi --gpu-reset -i 0", "CTX SWITCH TIMEOUT"),
     ("n1 的 GPU 0", "XID 109", "重置 GPU：nvidia-smi --gpu-reset -i 0"),
     ("healthy", "GPU 正常", "needs no action")),
    ("XID 45 after 109 needs the same",
     (XID + "45, pid=7, name=python, Ch 00000008 caused by previous Xid 109",), "gpu-fault/xid-reset",
     ("XID 109", "--gpu-reset"), ("XID 109", "--gpu-reset"), ("(XID 45)",)),
    ("XID 31 is the program's",
     (XID + "31, pid=7, name=python, Ch 00000008, intr 10000000. MMU Fault",), "gpu-fault/xid-application",
     ("restart the job", "compute-sanitizer"), ("重启作业",), ("--gpu-reset",)),
    ("XID 154 asks for a reboot",
     (XID + "154, GPU recovery action changed from 0x0 (None) to 0x2 (Node Reboot Required)",), "gpu-fault/xid-reboot",
     ("cordon n1", "drain and reboot n1"), ("cordon n1", "腾空并重启 n1"), ("--gpu-reset",)),
    ("XID 149 with its words",
     (XID + "149, NETIR_LINK_EVT  Fatal   XC0 i0 Link 01 (0x021425c6 0x00000000 0x00000000)",), "gpu-fault/xid-nvlink",
     ("NVLink of GPU 0 on n1", "reset all GPUs"), ("NVLink", "重置该节点所有 GPU"), ()),
    ("RmInitAdapter", ("NVRM: GPU 0000:3b:00.0: RmInitAdapter failed! (0x62:0x40:2393)",), "gpu-fault/init-failed",
     ("cannot initialise GPU 0 on n1", "reboot n1"), ("无法初始化 n1 的 GPU 0", "重启 n1"), ()),
    ("a switch", ("nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 22003, Fatal, Minion Halt",),
     "kernel-fault/nvswitch-reboot", ("SXid 22003", "reboot n1"), ("SXid 22003", "重启 n1"), ()),
    ("a read-only filesystem", ("EXT4-fs (sdz1): Remounting filesystem read-only",),
     "kernel-fault/filesystem-read-only", ("sdz1", "read-only", "fsck"), ("sdz1", "只读"), ()),
    ("an NFS server", ("nfs: server nas.lab not responding, still trying",), "kernel-fault/nfs-not-responding",
     ("NFS server nas.lab does not respond to n1",), ("NFS 服务器 nas.lab 对 n1 没有响应",), ("reboot",)),
    ("a container without memory",
     (f"oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),task_memcg={CGROUP},task=python3,pid=1,uid=0",),
     "kernel-fault/container-out-of-memory", ("exceeded its memory limit", "killed python3"), ("超出内存限额",), ()),
)  # fmt: skip


@pytest.mark.parametrize(
    ("name", "lines", "expect", "english", "chinese", "never"), CASES, ids=[case[0] for case in CASES]
)
def test_lines_to_alerts(
    name: str,
    lines: tuple[str, ...],
    expect: str,
    english: tuple[str, ...],
    chinese: tuple[str, ...],
    never: tuple[str, ...],
    tmp_path: Path,
) -> None:
    (finding,) = found(tmp_path, *lines)
    assert f"{finding.rule}/{finding.cause}" == expect
    assert [part for part in english if part not in said(finding)] == []
    assert [part for part in chinese if part not in said(finding, "zh")] == []
    assert [part for part in never if part in said(finding) or part in said(finding, "zh")] == []


@pytest.mark.parametrize(
    "line",
    [
        XID + "43, pid=7, name=python, Ch 00000008",
        XID + "63, pid=7, Row Remapper: New row (0x0000000012345678) marked for remapping, reset gpu to activate.",
        XID + "154, GPU recovery action changed from 0x1 (GPU Reset Required) to 0x0 (None)",
        "nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 19084, Non-fatal, Link 44 AN1 Heartbeat Timeout Error",
        "usb 1-1: new high-speed USB device",
    ],
)
def test_lines_without_an_alert(line: str, tmp_path: Path) -> None:
    assert found(tmp_path, line) == ()
