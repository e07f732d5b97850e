"""Every code of NVIDIA's catalogue has the action that the catalogue names, in both languages."""

from __future__ import annotations

import csv
import re
from pathlib import Path
from typing import Any

import pytest

from monitor.detect.lib.xids import cause_of
from monitor.detect.rules.gpu_fault import RULE
from monitor.facts import XidEvent, XidFacts
from monitor.facts.nvidia.actions import ErrorAction, FollowUp
from monitor.facts.nvidia.nvlink5_rows import NVLINK5_UNITS
from monitor.facts.nvidia.xid_rows import XID_ROWS
from monitor.facts.nvidia.xids import codes_of, xid_meaning
from monitor.i18n import say
from tests.cluster.builders import NOW, agent, card, uuid
from tests.detect.builders_gpu import rule_context, run, said

# The catalogue as published, state of 2025-10; the rows of the package are compared with it.
FIXTURES = Path(__file__).parents[2] / "fixtures" / "nvidia"


def table(name: str) -> list[list[str]]:
    lines = [line for line in (FIXTURES / name).read_text().splitlines() if line and not line.startswith("#")]
    return list(csv.reader(lines, delimiter="\t", quoting=csv.QUOTE_NONE))


CATALOG = [(int(code), name, now, then) for code, name, now, then in table("xid_catalog.tsv")]
NVLINK5 = table("xid_nvlink5.tsv")
# Resolution of the catalogue, and what the alert has to advise in each language; None: there is no alert.
ADVICE: dict[str, tuple[ErrorAction, tuple[str, str] | None]] = {
    "IGNORE": (ErrorAction.NONE, None),
    "RESTART_APP": (ErrorAction.RESTART_JOB, ("restart the (failed )?job", "重启(失败的)?作业")),
    "WORKFLOW_XID_45": (ErrorAction.RESTART_JOB, ("restart the job", "重启作业")),
    "CHECK_UVM": (ErrorAction.RESTART_JOB, ("restart the job", "重启作业")),
    "RESET_GPU": (ErrorAction.RESET_GPU, ("--gpu-reset", "--gpu-reset")),
    "WORKFLOW_XID_48": (ErrorAction.RESET_GPU, ("--gpu-reset", "--gpu-reset")),
    "WORKFLOW_NVLINK_ERR": (ErrorAction.RESET_GPU, ("reset all GPUs", "重置该节点所有 GPU")),
    "RESTART_BM": (ErrorAction.REBOOT_NODE, ("reboot n1", "重启 n1")),
    "RESTART_VM": (ErrorAction.REBOOT_NODE, ("reboot n1", "重启 n1")),
    "UPDATE_SWFW": (ErrorAction.UPDATE_SOFTWARE, ("Update the driver", "更新 n1 的驱动")),
    "CHECK_MECHANICALS": (ErrorAction.CHECK_POWER, ("power cables", "供电线")),
    "CONTACT_SUPPORT": (ErrorAction.CONTACT_VENDOR, ("Contact the vendor", "联系 n1 的厂商")),
    "": (ErrorAction.CONTACT_VENDOR, ("Contact the vendor", "联系 n1 的厂商")),
}
# What the page of a GPU says about a code.
PAGE: dict[ErrorAction, tuple[str, str]] = {
    ErrorAction.NONE: ("no action needed", "无需处理"),
    ErrorAction.RESTART_JOB: ("restart the job", "重启作业"),
    ErrorAction.RESET_GPU: ("reset the GPU", "重置 GPU"),
    ErrorAction.REBOOT_NODE: ("reboot the node", "重启节点"),
    ErrorAction.CONTACT_VENDOR: ("contact the vendor", "联系厂商"),
    ErrorAction.UPDATE_SOFTWARE: ("update driver and firmware", "更新驱动和固件"),
    ErrorAction.CHECK_POWER: ("check the power supply", "检查供电"),
}
LINE_DECIDES = ("WORKFLOW_NVLINK5_ERR", "XID_154")
DECIDED = [row for row in CATALOG if row[2] not in LINE_DECIDES]


def findings(code: int, message: str | None = None) -> Any:
    event = XidEvent(at=NOW - 60, code=code, source="kernel", gpu_uuid=uuid(0), message=message)
    return run(RULE, rule_context(agent(card(), xid=XidFacts(recent=(event,))))).findings


def test_the_rows_are_those_of_the_catalogue() -> None:
    assert list(XID_ROWS) == CATALOG
    assert len(CATALOG) == 172


@pytest.mark.parametrize(("code", "name", "now", "then"), DECIDED, ids=[f"XID {row[0]}" for row in DECIDED])
def test_action_of_each_code(code: int, name: str, now: str, then: str) -> None:
    action, words = ADVICE[now]
    meaning = xid_meaning(code)
    assert meaning is not None
    assert (meaning.code, meaning.name, meaning.action) == (code, name, action)
    assert tuple(say(lang, f"page.health.xid.{action}", {}) for lang in ("en", "zh")) == PAGE[action]
    found = findings(code)
    if words is None:
        assert found == ()
        return
    (finding,) = found
    for lang, advice in zip(("en", "zh"), words, strict=True):
        first = finding.advice[0]
        assert re.search(advice, say(lang, first.key, first.values), re.IGNORECASE)
        assert f"XID {code}" in said(finding, lang)


FOLLOW_UPS = (
    (8, FollowUp.CONTACT_VENDOR, "contact the vendor", "联系厂商"),
    (13, FollowUp.CHECK_PROGRAM, "compute-sanitizer", "compute-sanitizer"),
    (119, FollowUp.CHECK_SOFTWARE, "update the driver", "更新 n1 的驱动"),
    (136, FollowUp.CHECK_LINK, "nvidia-smi nvlink -s", "nvidia-smi nvlink -s"),
    (45, FollowUp.RESTART_FABRIC_MANAGER, "nvidia-fabricmanager", "nvidia-fabricmanager"),
    (95, None, "", ""),
)


@pytest.mark.parametrize(("code", "step", "english", "chinese"), FOLLOW_UPS)
def test_what_to_do_if_it_returns(code: int, step: FollowUp | None, english: str, chinese: str) -> None:
    meaning = xid_meaning(code)
    assert meaning is not None
    assert meaning.then is step
    (finding,) = findings(code)
    assert [text.key for text in finding.advice[1:]] == ([f"gpu-fault.then.{step}"] if step else [])
    assert english in said(finding)
    assert chinese in said(finding, "zh")


RECOVERY = "pid='<unknown>', name=<unknown>, GPU recovery action changed from 0x{:x} ({}) to 0x{:x} ({})"
RECOVERIES = (
    (1, "GPU Reset Required", ErrorAction.RESET_GPU, "--gpu-reset"),
    (1, "PF FLR", ErrorAction.RESET_GPU, "--gpu-reset"),
    (2, "Node Reboot Required", ErrorAction.REBOOT_NODE, "reboot n1"),
    (2, "OS Reboot", ErrorAction.REBOOT_NODE, "reboot n1"),
    (3, "Drain P2P", ErrorAction.RESTART_JOB, "restart the job"),
    (4, "Drain and Reset", ErrorAction.RESET_GPU, "--gpu-reset"),
)


@pytest.mark.parametrize(("number", "name", "action", "advice"), RECOVERIES)
def test_154_says_what_to_do(number: int, name: str, action: ErrorAction, advice: str) -> None:
    meaning = xid_meaning(154, RECOVERY.format(0, "None", number, name))
    assert meaning is not None
    assert meaning.action is action
    (finding,) = findings(154, RECOVERY.format(0, "None", number, name))
    assert advice in said(finding)


def test_154_says_that_nothing_is_left_to_do() -> None:
    assert findings(154, RECOVERY.format(1, "GPU Reset Required", 0, "None")) == ()


@pytest.mark.parametrize("message", [None, "", RECOVERY.format(0, "None", 9, "Dance"), "changed from 0x0 to 0x2"])
def test_154_with_a_line_that_says_nothing_is_unknown(message: str | None) -> None:
    assert xid_meaning(154, message) is None
    assert cause_of(154, message)[0] == "xid-unknown"


def origin(text: str) -> tuple[int, ErrorAction]:
    meaning = xid_meaning(45, text)
    assert meaning is not None
    return meaning.code, meaning.action


def test_45_follows_its_origin() -> None:
    line = "pid=7, name=python, channel 0x00000008, errorString CTX SWITCH TIMEOUT caused by previous Xid {}"
    assert origin(line.format(109)) == (109, ErrorAction.RESET_GPU)
    assert origin(line.format(31)) == (31, ErrorAction.RESTART_JOB)
    assert origin(line.format(79)) == (79, ErrorAction.REBOOT_NODE)
    assert origin(line.format(149)) == (149, ErrorAction.NONE)  # its own line says what to do
    assert origin(line.format(9999)) == (45, ErrorAction.RESTART_JOB)
    assert origin("pid=7, name=python, Ch 00000008") == (45, ErrorAction.RESTART_JOB)
    (finding,) = findings(45, line.format(109))
    assert finding.cause == "xid-reset"
    assert "(XID 109)" in said(finding)


def line_of(unit: str, pattern: str, status: str, severity: str) -> str:
    info = int(pattern.replace("-", "0"), 2)
    return f"{unit} {severity} XC0 i0 Link 00 (0x{info:08x} {status} 0x00000000 0x00000000)"


NVLINK5_ACTIONS = {"IGNORE": ErrorAction.NONE, "XID_154_EVAL": ErrorAction.NONE, "RESET_GPU": ErrorAction.RESET_GPU}


@pytest.mark.parametrize("row", NVLINK5, ids=[f"{row[0]} {row[1]} {row[2][6:12]} {row[4]}" for row in NVLINK5])
def test_details_of_nvlink5(row: list[str]) -> None:
    code, unit, old, new, status, now, _, severity = row
    stated = severity.split()[-1].strip("*?")
    for pattern in (old, new):
        for name in unit.split("/"):
            meaning = xid_meaning(int(code), line_of(name, pattern, status, stated))
            assert meaning is not None
            assert meaning.action is NVLINK5_ACTIONS[now]
            assert name in meaning.name.split("/")


def test_the_rows_of_nvlink5_are_those_of_the_catalogue() -> None:
    rows = [
        (code, unit, old, old_value, new, new_value, status, now, then)
        for code, unit, old, old_value, new, new_value, resolutions in NVLINK5_UNITS
        for status, now, then in resolutions
    ]

    def bits(pattern: str) -> tuple[int, int]:
        mask = pattern.translate(str.maketrans("-01", "011"))
        return int(mask, 2), int(pattern.replace("-", "0"), 2)

    expect = [
        (int(code), unit, *bits(old), *bits(new), int(status, 16), now, then)
        for code, unit, old, new, status, now, then, _ in NVLINK5
    ]
    assert rows == expect


NVLINK5_LINES = (
    ("of a B200, by a user", 149, "NETIR Fatal XC0 i0 Link -1 (0x000fe406 0x00000000)", ErrorAction.RESET_GPU),
    ("several errors at once: the worst counts", 145,
     "RLW_REMAP Nonfatal XC0 i0 Link 00 (0x00000004 0x00000041 0x0)", ErrorAction.RESET_GPU),
    ("the first word alone, as older drivers print it", 149, "NETIR_LINK_EVT Fatal XC 1 i 2 Link 01 [0x021425c6]",
     ErrorAction.RESET_GPU),
    ("words that the catalogue does not have, fatal", 149, "NEW_UNIT Fatal XC0 i0 Link 00 (0xffffffff 0x1)",
     ErrorAction.RESET_GPU),
    ("words that the catalogue does not have, not fatal", 149, "NEW_UNIT Nonfatal XC0 i0 Link 00 (0xffffffff 0x1)",
     ErrorAction.NONE),
    ("no words, not fatal", 144, "SAW_MVB Non-fatal", ErrorAction.NONE),
)  # fmt: skip


@pytest.mark.parametrize(("name", "code", "line", "action"), NVLINK5_LINES, ids=[row[0] for row in NVLINK5_LINES])
def test_lines_of_nvlink5(name: str, code: int, line: str, action: ErrorAction) -> None:
    meaning = xid_meaning(code, line)
    assert meaning is not None
    assert meaning.action is action


def test_unknown_codes_and_lines() -> None:
    assert xid_meaning(999) is None
    assert xid_meaning(-1) is None
    assert xid_meaning(144, "something new") is None
    assert xid_meaning(149) is None


def test_codes_that_make_a_gpu_faulty() -> None:
    assert codes_of(ErrorAction.RESET_GPU, ErrorAction.REBOOT_NODE) == (
        46, 48, 62, 64, 74, 79, 95, 109, 110, 119, 120, 136, 140, 143, 151, 155, 156, 158,
    )  # fmt: skip
