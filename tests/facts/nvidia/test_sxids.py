"""Every SXid has the action of its class, in both languages."""

from __future__ import annotations

from pathlib import Path

import pytest

from monitor.agent.kernel.lines import classify
from monitor.agent.kernel.summary import add_lines
from monitor.detect.rules.kernel_fault import RULE, Limits
from monitor.facts.kernel import KernelFacts
from monitor.facts.nvidia.actions import ErrorAction
from monitor.facts.nvidia.sxid_rows import ALWAYS_FATAL, FATAL, NON_FATAL
from monitor.facts.nvidia.sxids import sxid_action
from tests.cluster.builders import NOW, agent, card
from tests.detect.builders_gpu import rule_context, run, said

# Appendix D of NVIDIA's Fabric Manager user guide.
TABLE = Path(__file__).parents[2] / "fixtures" / "nvidia" / "sxid.tsv"
ROWS = [line.split("\t") for line in TABLE.read_text().splitlines() if line and not line.startswith("#")]
# Class, action, cause, and what the alert has to advise in each language.
CLASSES = {
    "Non-Fatal": (ErrorAction.NONE, "nvswitch-harmless", "No action needed", "无需处理"),
    "Fatal": (ErrorAction.RESET_GPU, "nvswitch-reset", "reset all of its GPUs", "重置它的所有 GPU"),
    "Always Fatal": (ErrorAction.REBOOT_NODE, "nvswitch-reboot", "reboot n1", "重启 n1"),
}


def test_the_rows_are_those_of_the_table() -> None:
    for name, codes in (("Non-Fatal", NON_FATAL), ("Fatal", FATAL), ("Always Fatal", ALWAYS_FATAL)):
        assert list(codes) == sorted(int(code) for code, row_class, _ in ROWS if row_class == name)


@pytest.mark.parametrize(("code", "name", "text"), ROWS, ids=[f"SXid {row[0]}" for row in ROWS])
def test_action_of_each_code(code: str, name: str, text: str) -> None:
    action, cause, english, chinese = CLASSES[name]
    assert sxid_action(int(code)) is action
    line = classify(f"nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): {code}, Link 62 {text}")
    assert line is not None
    count = Limits().of_cause(cause).count
    kernel = add_lines(KernelFacts(), [(NOW - 60, line)] * count, 0)
    (finding,) = run(RULE, rule_context(agent(card(), kernel=kernel))).findings
    assert finding.cause == cause
    assert english in said(finding)
    assert chinese in said(finding, "zh")
    assert f"SXid {code}" in said(finding)


@pytest.mark.parametrize(
    ("name", "code", "fatal", "action"),
    [
        ("the line is worse than the table", 22013, True, ErrorAction.RESET_GPU),
        ("the table is worse than the line", 12020, False, ErrorAction.REBOOT_NODE),
        ("both say the same", 12001, True, ErrorAction.RESET_GPU),
        ("a code outside the table, fatal", 99999, True, ErrorAction.RESET_GPU),
        ("a code outside the table, not fatal", 99999, False, ErrorAction.NONE),
        ("a code outside the table, and the line says nothing", 99999, None, ErrorAction.CONTACT_VENDOR),
    ],
)
def test_table_and_line(name: str, code: int, fatal: bool | None, action: ErrorAction) -> None:
    assert sxid_action(code, fatal=fatal) is action
