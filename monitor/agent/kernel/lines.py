"""Classifies one line of the kernel log. XIDs are not among the classes: `monitor.agent.collectors.xid` reads them."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from monitor.agent.cgroup import ContainerOwner, parse_owner
from monitor.agent.gpu import normalize_pci_address
from monitor.base.text import clean, shorten
from monitor.facts.kernel import KernelEventKind as Kind

XID_FRAGMENT = "NVRM: "
_MAX_SEARCHED_CHARS = 1000
_MAX_DEVICE_CHARS = 128
_MAX_MESSAGE_CHARS = 300
_MAX_CODE = 10**9
_UNCORRECTED_BITS = 1 << 61  # UC in the status of a bank of x86 machine checks


class KernelLine(NamedTuple):
    """What one line reports."""

    kind: Kind
    message: str
    device: str | None = None
    code: int | None = None
    fatal: bool | None = None
    owner: ContainerOwner = ContainerOwner(None, None)


Parse = Callable[[re.Match[str], str], KernelLine | None]


class Pattern(NamedTuple):
    """A class of lines: a line with the fragment is compared with the expression, in linear time."""

    fragment: str
    expression: re.Pattern[str]
    parse: Parse


def _of(kind: Kind) -> Parse:
    """Lines of one kind; the group `device`, if any, is its device."""

    def parse(match: re.Match[str], text: str) -> KernelLine:
        return KernelLine(kind, text, _device(match.groupdict().get("device")))

    return parse


def _device(text: str | None) -> str | None:
    return shorten(text.strip(), _MAX_DEVICE_CHARS) or None if text else None


def _pci(text: str) -> str | None:
    try:
        return normalize_pci_address(text)
    except ValueError:
        return None


def _of_gpu(kind: Kind) -> Parse:
    def parse(match: re.Match[str], text: str) -> KernelLine | None:
        address = _pci(match["device"])
        return KernelLine(kind, text, address) if address is not None else None

    return parse


def _sxid(match: re.Match[str], text: str) -> KernelLine | None:
    code = int(match["code"])
    stated = match["severity"].lower() if match["severity"] else ""
    fatal = stated == "fatal" if stated in ("fatal", "non-fatal", "nonfatal") else None
    address = _pci(match["device"])
    return KernelLine(Kind.NVSWITCH, text, address, code, fatal) if code < _MAX_CODE else None


def _bus_error(match: re.Match[str], text: str) -> KernelLine:
    kind = Kind.PCIE_CORRECTED if match["severity"].startswith("Correct") else Kind.PCIE_UNCORRECTED
    return KernelLine(kind, text, _pci(match["device"]) or _device(match["device"]))


def _edac(match: re.Match[str], text: str) -> KernelLine:
    kind = Kind.HARDWARE_CORRECTED if match["type"] == "CE" else Kind.HARDWARE_UNCORRECTED
    return KernelLine(kind, text, _device(match["device"]))


def _apei(match: re.Match[str], text: str) -> KernelLine:
    kind = Kind.HARDWARE_CORRECTED if match["severity"] in ("corrected", "info") else Kind.HARDWARE_UNCORRECTED
    return KernelLine(kind, text)


def _machine_check(match: re.Match[str], text: str) -> KernelLine:
    uncorrected = int(match["status"], 16) & _UNCORRECTED_BITS
    return KernelLine(Kind.HARDWARE_UNCORRECTED if uncorrected else Kind.HARDWARE_CORRECTED, text, match["device"])


def _disk(match: re.Match[str], text: str) -> KernelLine | None:
    """Floppy and optical drives without a medium report errors on healthy machines."""
    device = _device(match["device"])
    removable = device is None or re.match(r"(?:fd|sr)\d", device)
    return None if removable else KernelLine(Kind.DISK_ERROR, text, device)


def _oom_kill(match: re.Match[str], text: str) -> KernelLine:
    """`task_memcg` is the cgroup of the process; a limit of one of its parents may be what it exceeded."""
    kind = Kind.CONTAINER_OOM if "MEMCG" in match["constraint"] else Kind.NODE_OOM
    return KernelLine(kind, text, _device(match["process"]), owner=parse_owner(f"0::{match['cgroup']}"))


def _old_oom_kill(match: re.Match[str], text: str) -> KernelLine:
    return KernelLine(Kind.CONTAINER_OOM, text, owner=parse_owner(f"0::{match['cgroup']}"))


_ADDRESS = r"(?P<device>[0-9a-fA-F]{1,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}(?:\.[0-9a-fA-F])?)"
_NAME = r"(?P<device>[\w.:\[\]/-]{1,100})"


# The first pattern that matches counts. Wordings of Linux 4.14 to 6.17 and of drivers 450 to 590.
_ROWS: tuple[tuple[str, str, Parse], ...] = (
    ("RmInitAdapter failed", rf"NVRM: GPU (?:at )?(?:PCI:)?{_ADDRESS}: RmInitAdapter failed",
     _of_gpu(Kind.GPU_INIT)),
    ("device inaccessible", rf"^nvidia {_ADDRESS}: Unable to change power state", _of_gpu(Kind.GPU_LOST)),
    ("config space inaccessible", rf"^nvidia {_ADDRESS}: can't change power state", _of_gpu(Kind.GPU_LOST)),
    ("SXid (", rf"SXid \(PCI:{_ADDRESS}\): (?P<code>\d{{1,9}}), (?P<severity>[A-Za-z-]{{1,12}})?", _sxid),
    ("PCIe Bus Error", rf"{_ADDRESS}: (?:AER: )?PCIe Bus Error: severity=(?P<severity>[A-Za-z]+)", _bus_error),
    ("AER: can't recover", rf"{_ADDRESS}: AER: can't recover", _of(Kind.PCIE_UNCORRECTED)),
    ("EDAC ", r"EDAC (?P<device>MC\d{1,3}): \d{1,9} (?P<type>CE|UE) ", _edac),
    ("event severity: ",
     r"\[Hardware Error\]: {0,2}event severity: (?P<severity>corrected|info|recoverable|fatal)", _apei),
    ("Machine Check",
     (r"\[Hardware Error\]: (?P<device>CPU \d{1,5}): Machine Check(?: Exception)?: [0-9a-f]{1,16} "
     r"Bank \d{1,3}: (?P<status>[0-9a-fA-F]{1,16})\b"), _machine_check),
    ("Uncorrected hardware memory error", r"Uncorrected hardware memory error", _of(Kind.HARDWARE_UNCORRECTED)),
    ("Memory failure: ", r"Memory failure: 0x[0-9a-f]{1,16}: recovery action", _of(Kind.HARDWARE_UNCORRECTED)),
    ("error, dev ", rf"(?:I/O|medium|target|protection) error, dev {_NAME}, sector", _disk),
    ("Buffer I/O error on dev", rf"Buffer I/O error on dev(?:ice)? {_NAME}, logical block", _disk),
    ("nvme ", rf"^nvme {_NAME}: (?:I/O .{{1,60}}timeout, |controller is down)", _disk),
    ("EXT4-fs ", rf"EXT4-fs \({_NAME}\): Remounting filesystem read-only", _of(Kind.FILESYSTEM_READ_ONLY)),
    ("EXT4-fs error", rf"EXT4-fs error \(device {_NAME}\)", _of(Kind.FILESYSTEM_ERROR)),
    ("hutting down filesystem", rf"XFS \({_NAME}\): .{{0,200}}[Ss]hutting down filesystem",
     _of(Kind.FILESYSTEM_READ_ONLY)),
    ("XFS (", rf"XFS \({_NAME}\): (?:metadata I/O error|Metadata corruption|Corruption |Internal error)",
     _of(Kind.FILESYSTEM_ERROR)),
    ("BTRFS", rf"BTRFS info \(device {_NAME}[^)]{{0,40}}\): forced readonly", _of(Kind.FILESYSTEM_READ_ONLY)),
    ("nfs: server ", rf"^nfs: server {_NAME} not responding", _of(Kind.NFS_NOT_RESPONDING)),
    ("nfs: server ", rf"^nfs: server {_NAME} OK", _of(Kind.NFS_RECOVERED)),
    ("blocked for more than", r"^INFO: task (?P<device>.{1,32}):\d{1,10} blocked for more than \d{1,9} seconds",
     _of(Kind.HUNG_TASK)),
    ("soft lockup", r"BUG: soft lockup - (?P<device>CPU#\d{1,5}) stuck for", _of(Kind.LOCKUP)),
    ("hard LOCKUP", r"[Ww]atchdog detected hard LOCKUP on (?P<device>cpu \d{1,5})", _of(Kind.LOCKUP)),
    ("detected stall", r"INFO: rcu_\w{1,20} (?:self-)?detected stall", _of(Kind.LOCKUP)),
    ("oom-kill:constraint=",
     (r"^oom-kill:constraint=(?P<constraint>\w{1,40}),.{0,600},task_memcg=(?P<cgroup>/[^,]{0,400}),"
     r"task=(?P<process>.{1,32}),pid=\d"), _oom_kill),
    ("killed as a result of limit of", r"^Task in (?P<cgroup>/\S{0,400}) killed as a result of limit of",
     _old_oom_kill),
    ("Out of memory: Kill process", r"^Out of memory: Kill process \d{1,10} \((?P<device>.{1,32})\) score",
     _of(Kind.NODE_OOM)),
)  # fmt: skip
PATTERNS = tuple(Pattern(fragment, re.compile(expression, re.ASCII), parse) for fragment, expression, parse in _ROWS)
FRAGMENTS = (XID_FRAGMENT, *dict.fromkeys(pattern.fragment for pattern in PATTERNS))


def classify(text: str) -> KernelLine | None:
    """What a line reports; None if it is of no class."""
    searched = text[:_MAX_SEARCHED_CHARS]
    for pattern in PATTERNS:
        if pattern.fragment not in searched or (match := pattern.expression.search(searched)) is None:
            continue
        line = pattern.parse(match, searched)
        return line and line._replace(message=shorten(clean(line.message), _MAX_MESSAGE_CHARS))
    return None
