"""gpu-fault: every sign of a broken GPU or driver."""

from __future__ import annotations

from typing import Any

import pytest

from monitor.detect.base import Threshold
from monitor.detect.engine import Engine
from monitor.detect.rules.gpu_fault import CAUSES, RULE, SEVERITIES, Limits
from monitor.facts import CollectorFact, EccFact, RetiredPagesFact, RowRemapFact, XidCount, XidEvent, XidFacts
from monitor.facts.agents import AgentFact
from monitor.facts.kernel import KernelEvent, KernelFacts
from monitor.i18n.en import FINDINGS
from tests.cluster.builders import NOW, agent, card, device, node, pod, uuid
from tests.detect.builders_gpu import after_silence, catalog_problems, causes, rule_context, run, said


def xid(code: int, ago: float = 60, **fields: Any) -> XidFacts:
    given: dict[str, Any] = {"gpu_uuid": uuid(0), "pci_bus_id": "0000:3b:00.0", "message": "said the kernel"}
    return XidFacts(recent=(XidEvent(at=NOW - ago, code=code, source="kernel", **(given | fields)),))


def hung(seconds: float) -> CollectorFact:
    return CollectorFact(name="gpu", outcome="ok", interval_seconds=15, hung_since=NOW - seconds)


def remaps(pending: bool = False, failed: bool = False) -> RowRemapFact:
    return RowRemapFact(corrected=0, uncorrected=1, pending=pending, failed=failed)


def kernel(kind: str, ago: float = 60, device: str = "0000:3b:00.0") -> KernelFacts:
    return KernelFacts(
        recent=(KernelEvent(kind=kind, since=NOW - ago, at=NOW - ago, device=device, message="the line"),)
    )


RECOVERY = "GPU recovery action changed from 0x0 (None) to 0x{} ({})"
LINK_DOWN = "NETIR_LINK_EVT  Fatal   XC0 i0 Link 01 (0x021425c6 0x00000000 0x00000000)"
INIT_FAILED = kernel("gpu-init")
OLD_COUNT = XidFacts(counts=(XidCount(code=79, count=1, last_at=NOW - 60, gpu_uuid=uuid(0)),))

CASES: tuple[tuple[str, AgentFact, Any, list[str]], ...] = (
    ("well", agent(card(ecc=EccFact(enabled=True, volatile_uncorrected_sram=0), row_remaps=remaps())), None, []),
    *((f"XID {code}", agent(card(), xid=xid(code)), None, ["xid-application"])
      for code in (13, 31, 45, 68, 69)),
    ("XID 94", agent(card(), xid=xid(94)), None, ["xid-memory-contained"]),
    *((f"XID {code}", agent(card(), xid=xid(code)), None, ["xid-memory"]) for code in (48, 64, 95, 140)),
    *((f"XID {code}", agent(card(), xid=xid(code)), None, ["xid-driver"]) for code in (62, 119, 120, 143)),
    *((f"XID {code}", agent(card(), xid=xid(code)), None, ["xid-reset"]) for code in (46, 109, 110, 158)),
    ("45 follows its origin", agent(card(), xid=xid(45, message="Ch 8 caused by previous Xid 109")), None,
     ["xid-reset"]),
    ("45 whose origin has its own line", agent(card(), xid=xid(45, message="Ch 8 caused by previous Xid 149")), None,
     []),
    ("154 asks for a reboot", agent(card(), xid=xid(154, message=RECOVERY.format(2, "Node Reboot Required"))), None,
     ["xid-reboot"]),
    ("154 asks for nothing", agent(card(), xid=xid(154, message=RECOVERY.format(0, "None"))), None, []),
    ("154 without its line", agent(card(), xid=xid(154, message=None)), None, ["xid-unknown"]),
    ("a link of NVLink 5 is down", agent(card(), xid=xid(149, message=LINK_DOWN)), None, ["xid-nvlink"]),
    ("a GPU that cannot be initialised", agent(card(), kernel=INIT_FAILED), None, ["init-failed"]),
    ("a GPU that vanished without an XID", agent(card(), kernel=kernel("gpu-lost")), None, ["card-lost"]),
    ("an old line about a GPU", agent(card(), kernel=kernel("gpu-lost", 3600)), None, []),
    ("lines about other devices", agent(card(), kernel=kernel("disk-error")), None, []),
    *((f"XID {code} means nothing", agent(card(), xid=xid(code)), None, []) for code in (43, 63)),
    ("XID 74", agent(card(), xid=xid(74)), None, ["xid-nvlink"]),
    ("XID 79", agent(card(), xid=xid(79)), None, ["xid-off-bus"]),
    ("XID 92 means nothing", agent(card(), xid=xid(92)), None, []),
    ("an XID of which nothing is known", agent(card(), xid=xid(999)), None, ["xid-unknown"]),
    ("an XID that is only in the counters any more", agent(card(), xid=OLD_COUNT), None, ["xid-off-bus"]),
    ("an hour ago, and the card is well", agent(card(), xid=xid(79, 3600)), None, []),
    ("just below an hour", agent(card(), xid=xid(79, 3599)), None, ["xid-off-bus"]),
    ("a program's mistake is forgotten sooner", agent(card(), xid=xid(31, 900)), None, []),
    ("the node's clock is an hour behind", agent(card(), xid=xid(79, 3660), at=NOW - 3601), None, ["xid-off-bus"]),
    ("a card that is only known by its place", agent(card(pci_bus_id="0000:3b:00.0"), xid=xid(79, gpu_uuid=None)), None,
     ["xid-off-bus"]),
    ("memory errors", agent(card(ecc=EccFact(volatile_uncorrected_dram=2))), None, ["ecc-uncorrectable"]),
    ("errors of an earlier life of the driver", agent(card(ecc=EccFact(aggregate_uncorrected_dram=2))), None, []),
    ("a remap that waits", agent(card(row_remaps=remaps(pending=True))), None, ["remap-pending"]),
    ("a page that waits", agent(card(retired_pages=RetiredPagesFact(pending=True))), None, ["remap-pending"]),
    ("a remap that failed", agent(card(row_remaps=remaps(failed=True, pending=True))), None, ["remap-failed"]),
    ("the driver asks", agent(card(recovery_action="gpu_reset")), None, ["recovery-due"]),
    ("the driver asks for nothing", agent(card(recovery_action="none")), None, []),
    ("lost", agent(card(lost=True, error="GPU is lost"), xid=xid(79)), None, ["card-lost"]),
    ("the driver hangs", agent(gpu=None, collectors=(hung(60),)), None, ["driver-hung"]),
    ("the driver is slow", agent(gpu=None, collectors=(hung(59),)), None, []),
    ("two cards", agent(card(0, lost=True), card(1, recovery_action="node_reboot")), None,
     ["card-lost", "recovery-due"]),
)  # fmt: skip


@pytest.mark.parametrize(("name", "given", "memory", "expect"), CASES, ids=[case[0] for case in CASES])
def test_fault(name: str, given: AgentFact, memory: Any, expect: list[str]) -> None:
    found = run(RULE, rule_context(given), memory)
    assert causes(found) == [(SEVERITIES[cause].value, cause) for cause in expect]


MISSING = {"n1": {"None/cards-missing/": NOW - 300}}
COUNTS: tuple[tuple[str, int, Any, Any, list[str]], ...] = (
    ("one of eight is missing", 7, node("n1", 8), MISSING, ["cards-missing"]),
    ("just below", 7, node("n1", 8), {"n1": {"None/cards-missing/": NOW - 299}}, []),
    ("all there", 8, node("n1", 8), MISSING, []),
    ("more than Kubernetes counts is another rule's", 8, node("n1", 7), MISSING, []),
    ("each card four times", 2, node("n1", 8), MISSING, []),
    ("each card four times, one missing, as its label says", 7,
     node("n1", 32, labels={"nvidia.com/gpu.replicas": "4"}), MISSING, []),
    ("slices", 3, node("n1", 8, capacity={"nvidia.com/gpu": 8.0, "nvidia.com/mig-1g.5gb": 7.0}), MISSING, []),
)  # fmt: skip


@pytest.mark.parametrize(("name", "seen", "counted", "memory", "expect"), COUNTS, ids=[case[0] for case in COUNTS])
def test_counts(name: str, seen: int, counted: Any, memory: Any, expect: list[str]) -> None:
    given = rule_context(agent(*(card(index) for index in range(seen))), nodes=(counted,))
    assert [cause for _, cause in causes(run(RULE, given, memory))] == expect


TURNS: tuple[tuple[str, AgentFact, float | None], ...] = (
    ("the driver hangs", agent(gpu=None, collectors=(hung(20),)), NOW + 40),
    ("an XID", agent(card(), xid=xid(79, 600)), NOW + 3000),
    ("a program's mistake", agent(card(), xid=xid(31, 600)), NOW + 300),
    ("a lost card stays lost", agent(card(lost=True)), None),
)


@pytest.mark.parametrize(("name", "given", "expect"), TURNS, ids=[case[0] for case in TURNS])
def test_when_time_alone_changes_something(name: str, given: AgentFact, expect: float | None) -> None:
    engine = Engine((RULE,), {})
    engine.evaluate(rule_context(given))
    assert engine.next_at == expect


def test_garbage_in_the_memory() -> None:
    seven = rule_context(agent(*(card(index) for index in range(7))), nodes=(node("n1", 8),))
    for garbage in ({"n1": "x"}, {"n1": {"None/cards-missing/": "x", "y": None}}, {"n1": [1]}):
        assert causes(run(RULE, seven, garbage)) == []


def test_a_hung_driver_is_reported_beside_what_it_hides() -> None:
    before = rule_context(agent(card(ecc=EccFact(volatile_uncorrected_dram=2))))
    found = after_silence(RULE, before, rule_context(agent(card(), gpu=None, collectors=(hung(90),))))
    assert [(each.cause, each.held) for each in found] == [("ecc-uncorrectable", True), ("driver-hung", False)]


def test_a_shared_card_is_known_by_its_devices() -> None:
    mine = pod("mine")
    shared = agent(card(0), card(1), card(2), devices=(device(mine, replica=3),))
    assert causes(run(RULE, rule_context(shared, pods=(mine,), nodes=(node("n1", 8),)), MISSING)) == []


def test_the_table_is_configuration() -> None:
    given = rule_context(agent(card(), xid=xid(79)))
    assert causes(run(RULE, given, None, Limits(xid_off_bus=(), xid_nvlink=(79,)))) == [("warning", "xid-nvlink")]
    assert causes(run(RULE, given, None, None, n1=Limits(xid_ignored=(79,)))) == []


def test_a_code_may_have_a_threshold() -> None:
    events = tuple(
        XidEvent(at=NOW - ago, code=31, source="kernel", gpu_uuid=uuid(0), message="x") for ago in (500, 300, 100)
    )
    given = rule_context(agent(card(), xid=XidFacts(recent=events)))
    for count, window, found in ((3, 600, 1), (4, 600, 0), (3, 500, 0), (3, 501, 1)):
        limits = Limits(xid_thresholds={31: Threshold(count, float(window))})
        assert len(run(RULE, given, None, limits).findings) == found, (count, window)


def test_an_old_agent_sends_only_xids() -> None:
    given = rule_context(agent(card(), xid=xid(109)))
    assert given.facts.snapshots["n1"].kernel is None
    assert causes(run(RULE, given)) == [("critical", "xid-reset")]


def test_a_gpu_without_an_index_is_named_by_its_address() -> None:
    (finding,) = run(RULE, rule_context(agent(card(), kernel=INIT_FAILED))).findings
    assert finding.labels == {"node": "n1"}
    assert "GPU 0000:3b:00.0 on n1" in said(finding)
    assert "无法初始化 n1 的 GPU 0000:3b:00.0" in said(finding, "zh")
    known = agent(card(pci_bus_id="0000:3b:00.0"), kernel=INIT_FAILED)
    assert run(RULE, rule_context(known)).findings[0].labels == {"node": "n1", "gpu": "0"}


def test_what_it_says() -> None:
    mine = pod("mine")
    broken = agent(card(ecc=EccFact(volatile_uncorrected_sram=3)), devices=(device(mine),), xid=xid(48))
    (finding,) = run(RULE, rule_context(broken, pods=(mine,))).findings
    assert finding.labels == {"node": "n1", "gpu": "0"}  # without the pod, so that the finding survives it
    for part in ("XID 48", "said the kernel", "3 uncorrectable ECC errors", "team/mine", "alice", "--gpu-reset -i 0"):
        assert part in said(finding)
    assert "显存不可信" in said(finding, "zh")
    assert finding.raw == "Xid (0000:3b:00.0): 48, said the kernel"


def test_an_xid_of_a_card_that_nobody_knows_is_the_nodes() -> None:
    (finding,) = run(RULE, rule_context(agent(card(), xid=xid(79, gpu_uuid=None)))).findings
    assert finding.labels == {"node": "n1"}
    assert "0000:3b:00.0" in said(finding)


def test_an_endless_message_is_cut() -> None:
    (finding,) = run(RULE, rule_context(agent(card(), xid=xid(79, message="x" * 100_000)))).findings
    assert len(finding.raw or "") <= 1000
    assert len(said(finding)) < 2000


def test_every_cause_has_advice() -> None:
    assert [cause for cause in CAUSES if f"gpu-fault.{cause}.advice" not in FINDINGS] == []


def test_held_while_nothing_is_known() -> None:
    before = rule_context(agent(card(ecc=EccFact(volatile_uncorrected_dram=2))))
    for blind in (agent(card(), received_at=NOW - 90), agent(card(), gpu=None, collectors=(hung(5),))):
        (finding,) = after_silence(RULE, before, rule_context(blind))
        assert (finding.held, finding.cause) == (True, "ecc-uncorrectable")
    assert after_silence(RULE, before, rule_context(agent(card()))) == ()


def test_an_unreadable_kernel_log_holds_xids_and_nothing_else() -> None:
    failing = CollectorFact(name="xid", outcome="failed", interval_seconds=15, message="denied")
    unread = rule_context(agent(card(), collectors=(failing,)))
    (finding,) = after_silence(RULE, rule_context(agent(card(), xid=xid(79))), unread)
    assert (finding.held, finding.cause) == (True, "xid-off-bus")
    assert after_silence(RULE, rule_context(agent(card(ecc=EccFact(volatile_uncorrected_dram=2)))), unread) == ()


def test_missing_cards_are_held_while_kubernetes_cannot_be_asked() -> None:
    seven = agent(*(card(index) for index in range(7)))
    before = rule_context(seven, nodes=(node("n1", 8),))
    (finding,) = after_silence(RULE, before, rule_context(seven, nodes=(), pods_known=False), MISSING)
    assert (finding.held, finding.cause) == (True, "cards-missing")


def test_words() -> None:
    assert catalog_problems(RULE) == []
