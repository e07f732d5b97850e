"""Lines of the kernel log and what they report. Wordings of Linux 4.14 to 6.17 and of NVIDIA's drivers."""

from __future__ import annotations

import time

import pytest

from monitor.agent.kernel.lines import FRAGMENTS, PATTERNS, classify
from monitor.base.text import ELLIPSIS
from monitor.facts.kernel import KernelEventKind

ID = "65a1b6ad09655b3f1475ede1aa0061a97c0d1ada9f2b2acac959afbc92094463"
UID = "9493223b-1c2d-4e3f-8a9b-0123456789ab"
POD_CGROUP = (
    "/kubepods.slice/kubepods-burstable.slice/"
    f"kubepods-burstable-pod{UID.replace('-', '_')}.slice/cri-containerd-{ID}.scope"
)
OOM = "oom-kill:constraint={},nodemask=(null),cpuset=x,mems_allowed=0-1,{}task_memcg={},task=python3,pid=4242,uid=0"

# Line, kind, device.
LINES: tuple[tuple[str, str, str | None], ...] = (
    ("NVRM: GPU 0000:18:00.0: RmInitAdapter failed! (0x62:0x40:2393)", "gpu-init", "0000:18:00.0"),
    ("NVRM: GPU at PCI:0000:3b:00: RmInitAdapter failed! (0x26:0x56:1463)", "gpu-init", "0000:3b:00.0"),
    ("nvidia 0000:3b:00.0: Unable to change power state from D3cold to D0, device inaccessible", "gpu-lost",
     "0000:3b:00.0"),
    ("nvidia 0000:3b:00.0: can't change power state from D3cold to D0 (config space inaccessible)", "gpu-lost",
     "0000:3b:00.0"),
    ("nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 22013, Fatal, Link 62 Minion Link DLREQ interrupt", "nvswitch",
     "0000:c1:00.0"),
    ("nvidia 0000:3b:00.0: PCIe Bus Error: severity=Corrected, type=Physical Layer, (Receiver ID)", "pcie-corrected",
     "0000:3b:00.0"),
    ("pcieport 0000:00:03.0: PCIe Bus Error: severity=Correctable, type=Data Link Layer", "pcie-corrected",
     "0000:00:03.0"),
    ("pcieport 0000:00:03.0: AER: PCIe Bus Error: severity=Uncorrected (Fatal), type=Transaction Layer",
     "pcie-uncorrected", "0000:00:03.0"),
    ("pcieport 0000:00:03.0: PCIe Bus Error: severity=Uncorrectable (Non-Fatal), type=Transaction Layer",
     "pcie-uncorrected", "0000:00:03.0"),
    ("nvidia 0000:3b:00.0: AER: can't recover (no error_detected callback)", "pcie-uncorrected", "0000:3b:00.0"),
    ("EDAC MC0: 1 CE memory read error on CPU_SrcID#0_MC#0_Chan#1_DIMM#0 (channel:1 slot:0 page:0x1 offset:0x0)",
     "hardware-corrected", "MC0"),
    ("EDAC MC11: 1 UE memory read error on CPU_SrcID#1_MC#2_Chan#0_DIMM#0", "hardware-uncorrected", "MC11"),
    ("{1}[Hardware Error]: event severity: corrected", "hardware-corrected", None),
    ("{1}[Hardware Error]: event severity: fatal", "hardware-uncorrected", None),
    ("mce: [Hardware Error]: CPU 3: Machine Check: 0 Bank 7: 8c00004000010091", "hardware-corrected", "CPU 3"),
    ("mce: [Hardware Error]: CPU 12: Machine Check Exception: 5 Bank 6: be00000000800400", "hardware-uncorrected",
     "CPU 12"),
    ("mce: Uncorrected hardware memory error in user-access at 1f1f1f000", "hardware-uncorrected", None),
    ("Memory failure: 0x1f1f1f: recovery action for dirty LRU page: Recovered", "hardware-uncorrected", None),
    ("blk_update_request: I/O error, dev sda, sector 2048 op 0x0:(READ) flags 0x0", "disk-error", "sda"),
    ("I/O error, dev nvme0n1, sector 1024 op 0x1:(WRITE) flags 0x8800 phys_seg 1 prio class 2", "disk-error",
     "nvme0n1"),
    ("critical medium error, dev sdb, sector 99 op 0x0:(READ)", "disk-error", "sdb"),
    ("Buffer I/O error on dev dm-0, logical block 12, lost async page write", "disk-error", "dm-0"),
    ("Buffer I/O error on device sdc1, logical block 0", "disk-error", "sdc1"),
    ("nvme nvme0: I/O 258 (I/O Cmd) QID 4 timeout, aborting", "disk-error", "nvme0"),
    ("nvme nvme1: controller is down; will reset: CSTS=0xffffffff, PCI_STATUS=0xffff", "disk-error", "nvme1"),
    ("EXT4-fs error (device sda1): ext4_lookup:1855: inode #2: comm ls: deleted inode referenced", "filesystem-error",
     "sda1"),
    ("EXT4-fs (sda1): Remounting filesystem read-only", "filesystem-read-only", "sda1"),
    ("XFS (dm-0): metadata I/O error in \"xfs_buf_ioend\" at daddr 0x1 len 1 error 5", "filesystem-error", "dm-0"),
    ("XFS (nvme0n1p1): Corruption of in-memory data (0x8) detected at x (fs/xfs.c:1).  Shutting down filesystem.",
     "filesystem-read-only", "nvme0n1p1"),
    ("BTRFS info (device sdb2): forced readonly", "filesystem-read-only", "sdb2"),
    ("BTRFS info (device sdb2 state EA): forced readonly", "filesystem-read-only", "sdb2"),
    ("nfs: server nas.lab not responding, still trying", "nfs-not-responding", "nas.lab"),
    ("nfs: server 10.0.0.5 not responding, timed out", "nfs-not-responding", "10.0.0.5"),
    ("nfs: server fd00::5 not responding, still trying", "nfs-not-responding", "fd00::5"),
    ("nfs: server nas.lab OK", "nfs-recovered", "nas.lab"),
    ("INFO: task python3:4242 blocked for more than 120 seconds.", "hung-task", "python3"),
    ("INFO: task kworker/u64:3:77 blocked for more than 241 seconds.", "hung-task", "kworker/u64:3"),
    ("watchdog: BUG: soft lockup - CPU#3 stuck for 22s! [kworker/3:1:1234]", "lockup", "CPU#3"),
    ("NMI watchdog: BUG: soft lockup - CPU#11 stuck for 23s! [python:77]", "lockup", "CPU#11"),
    ("watchdog: Watchdog detected hard LOCKUP on cpu 5", "lockup", "cpu 5"),
    ("rcu: INFO: rcu_sched self-detected stall on CPU", "lockup", None),
    ("Out of memory: Kill process 99 (python) score 900 or sacrifice child", "node-oom", "python"),
)  # fmt: skip
IGNORED = (
    "",
    "NVRM: Xid (PCI:0000:3b:00): 79, pid=1234, GPU has fallen off the bus.",
    "NVRM: loading NVIDIA UNIX x86_64 Kernel Module  535.104.05",
    "nvidia-nvswitch3: open (major=510)",
    "SXid (nowhere): 22013, Fatal",
    "pcieport 0000:00:03.0: AER: Corrected error received: 0000:3b:00.0",  # the line of the device follows
    "mce: [Hardware Error]: Machine check events logged",  # the lines of the events follow, or the vendor's tool
    "EDAC MC0: Giving out device to module skx_edac controller Skylake Socket#0 IMC#0",
    "I/O error, dev fd0, sector 0 op 0x0:(READ)",
    "I/O error, dev sr0, sector 0 op 0x0:(READ)",
    "EXT4-fs (sda1): mounted filesystem with ordered data mode. Quota mode: none.",
    "XFS (dm-0): Ending clean mount",
    "nvme nvme0: 16/0/0 default/read/poll queues",
    "NFS: state manager: check lease failed on NFSv4 server nas.lab",
    "a user wrote: nfs: server nas.lab not responding",
    "Memory cgroup out of memory: Killed process 4242 (python3) total-vm:1kB",  # after the line oom-kill:
    "Out of memory: Killed process 4242 (python3) total-vm:1kB",
)


@pytest.mark.parametrize(("text", "kind", "device"), LINES, ids=[line[0][:50] for line in LINES])
def test_lines(text: str, kind: str, device: str | None) -> None:
    line = classify(text)
    assert line is not None
    assert (line.kind, line.device, line.message) == (kind, device, text)


@pytest.mark.parametrize("text", IGNORED, ids=[text[:50] for text in IGNORED])
def test_other_lines(text: str) -> None:
    assert classify(text) is None


OOM_KILLS = (
    (
        "a container over its limit",
        "CONSTRAINT_MEMCG",
        f"oom_memcg={POD_CGROUP},",
        POD_CGROUP,
        "container-oom",
        ID,
        UID,
    ),
    ("docker", "CONSTRAINT_MEMCG", "oom_memcg=/docker,", f"/docker/{ID}", "container-oom", ID, None),
    ("a pod when the node has no memory", "CONSTRAINT_NONE", "global_oom,", POD_CGROUP, "node-oom", ID, UID),
    ("a service of the host", "CONSTRAINT_NONE", "global_oom,", "/system.slice/x.service", "node-oom", None, None),
    ("a NUMA node", "CONSTRAINT_CPUSET", "global_oom,", "/user.slice", "node-oom", None, None),
)


@pytest.mark.parametrize(("name", "constraint", "more", "cgroup", "kind", "container", "pod"), OOM_KILLS)
def test_oom_kills(
    name: str, constraint: str, more: str, cgroup: str, kind: str, container: str | None, pod: str | None
) -> None:
    line = classify(OOM.format(constraint, more, cgroup))
    assert line is not None
    assert (line.kind, line.device, *line.owner) == (kind, "python3", container, pod)


def test_an_oom_kill_of_an_old_kernel() -> None:
    line = classify(f"Task in {POD_CGROUP} killed as a result of limit of {POD_CGROUP}")
    assert line is not None
    assert (line.kind, *line.owner) == ("container-oom", ID, UID)


@pytest.mark.parametrize(
    ("rest", "code", "fatal"),
    [
        ("22013, Fatal, Link 62 Minion Link DLREQ interrupt", 22013, True),
        ("19084, Non-fatal, Link 44 AN1 Heartbeat Timeout Error", 19084, False),
        ("20009, Link 4 RX Short Error Rate", 20009, None),
        ("12028, Severity 0 Engine instance 62 Sub-engine instance 00", 12028, None),
    ],
)
def test_codes_of_switches(rest: str, code: int, fatal: bool | None) -> None:
    line = classify(f"nvidia-nvswitch0: SXid (PCI:0000:c1:00.0): {rest}")
    assert line is not None
    assert (line.code, line.fatal) == (code, fatal)


def test_every_pattern_has_a_line_and_the_prefilter_lets_it_pass() -> None:
    samples = [text for text, *_ in LINES] + [OOM.format("C", "", "/x"), "Task in /x killed as a result of limit of /y"]
    for pattern in PATTERNS:
        assert any(pattern.expression.search(text) and pattern.fragment in text for text in samples), pattern
    assert all(any(fragment in text for fragment in FRAGMENTS) for text in samples)
    kinds = {line.kind for text in samples if (line := classify(text)) is not None}
    assert kinds == set(KernelEventKind)


def test_a_long_or_odd_line_is_cut_and_cleaned() -> None:
    line = classify("EXT4-fs error (device sda1): \x1b[31m" + "x" * 5000)
    assert line is not None
    assert len(line.message) <= 300
    assert line.message.endswith(ELLIPSIS)
    assert line.message.isprintable()


@pytest.mark.parametrize("pattern", PATTERNS, ids=lambda pattern: pattern.fragment)
def test_no_line_takes_long(pattern: object) -> None:
    fragment = getattr(pattern, "fragment", "")
    began = time.process_time()
    for filler in ("a", "0", "0:", "/", ",", "(", " ", "task_memcg=/", "0000:00:00.0: ", fragment):
        classify((filler * 5000)[:5000] + fragment + filler * 5000)
        classify(fragment + filler * 5000)
    assert time.process_time() - began < 1.0
