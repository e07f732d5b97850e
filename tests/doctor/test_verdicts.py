# ruff: noqa: E501  # a table
from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from monitor.doctor.checks import (
    agents,
    clock,
    config,
    driver,
    kubernetes,
    language,
    node,
    packages,
    ports,
    receivers,
    rights,
    sockets,
    state,
)
from monitor.doctor.checks.agents import AgentsFacts, PolledAgent
from monitor.doctor.checks.config import NamedFile
from monitor.doctor.checks.packages import Package, satisfies
from monitor.doctor.checks.receivers import Reachability, ReceiverFacts
from monitor.doctor.checks.rights import ChartRole, RequiredRight, RightReview
from monitor.doctor.checks.sockets import KubeletFacts, RuntimeSocket
from monitor.doctor.checks.state import StateDirectory
from monitor.doctor.context import DoctorRequest, SentMessage, Terminal
from monitor.doctor.model import MAX_NAMES, CheckResult, CheckStatus, Verdicts, joined
from monitor.doctor.present import rows
from monitor.doctor.registry import CHECKS
from monitor.facts.node import CollectorFact, NodeSnapshot
from monitor.i18n import CATALOGS

NOW = 1_000_000.0
GIB = 1 << 30
MAY = RequiredRight("list", "pods", ChartRole.READ)
NO_EVENTS = (RequiredRight("list", "events", ChartRole.READ), RequiredRight("watch", "events", ChartRole.READ))
SECRET = NamedFile("daemon.token_file", "/t", secret=True, mode=0o644)


def collector(name: str, outcome: str = "ok", succeeded_at: float = NOW, **more: Any) -> CollectorFact:
    return CollectorFact(name=name, outcome=outcome, interval_seconds=5, succeeded_at=succeeded_at, **more)


def loaded(path: str | None, *problems: str) -> DoctorRequest:
    return DoctorRequest(path, None, problems, Terminal("en", "utf-8"))


def agent(name: str, *collectors: CollectorFact, version: str = "1.0") -> PolledAgent:
    snapshot = NodeSnapshot(node=name, at=NOW, agent_version=version, collectors=collectors)
    return PolledAgent(f"{name}:9835", name, snapshot=snapshot, offset=0.0)


def silent(name: str, trouble: str) -> PolledAgent:
    return PolledAgent(f"{name}:9835", name, trouble, "because")


def polled(*agents: PolledAgent, **more: Any) -> AgentsFacts:
    return AgentsFacts(agents=agents, version="1.0", **{"gpu_nodes": ("gpu1", "gpu2"), **more})


Case = tuple[str, Callable[[Any], Verdicts], Any, list[str]]
CASES: list[Case] = [
    ("a file", config.judge, loaded("/c"), ["ok config.read"]),
    ("no file", config.judge, loaded(None), ["ok config.defaults"]),
    ("errors", config.judge, loaded("/c", "/c:1: a", "/c:2: b"), ["problem config.wrong"] * 2),
    ("no files", config.judge_files, config.FilesFacts(), ["not-checked config.no-files"]),
    ("a file is gone", config.judge_files, config.FilesFacts((NamedFile("ca_file", "/a", False, why="gone"),)), ["problem config.no-file"]),
    ("a certificate may be read", config.judge_files, config.FilesFacts((NamedFile("ca_file", "/a", False, 0o644),)), ["ok config.files"]),
    ("a secret may not be read", config.judge_files, config.FilesFacts((SECRET,)), ["warning config.open-secret"]),
    ("but it may in a pod", config.judge_files, config.FilesFacts((SECRET,), in_pod=True), ["ok config.files"]),
    ("a secret readable by the group", config.judge_files, config.FilesFacts((NamedFile("token_file", "/t", True, 0o640),)), ["ok config.files"]),
    ("secrets in an open file", config.judge_files, config.FilesFacts(inline=("daemon.token",), config=NamedFile("--config", "/c", False, 0o644)), ["warning config.open"]),
    ("no secrets in an open file", config.judge_files, config.FilesFacts(config=NamedFile("--config", "/c", False, 0o644)), ["not-checked config.no-files"]),
    ("packages", packages.judge, packages.PackageFacts("3.11.7", ">=3.11", (Package("click", ">=8.1", "8.1.7"),)), ["ok packages.ok"]),
    ("not a package", packages.judge, packages.PackageFacts("3.11.7", None, None), ["not-checked packages.unknown"]),
    ("old Python", packages.judge, packages.PackageFacts("3.10.1", ">=3.11", ()), ["problem packages.python"]),
    ("missing", packages.judge, packages.PackageFacts("3.12", None, (Package("click", ">=8.1", None),)), ["problem packages.missing"]),
    ("an extra", packages.judge, packages.PackageFacts("3.12", None, (Package("apprise", ">=1", None, "apprise"),)), ["problem packages.extra"]),
    ("too new", packages.judge, packages.PackageFacts("3.12", None, (Package("apscheduler", ">=3.11,<4", "4.0"),)), ["problem packages.version"]),
    ("off", kubernetes.judge, kubernetes.KubeFacts("no"), ["not-checked kubernetes.off"]),
    ("no credentials, optional", kubernetes.judge, kubernetes.KubeFacts("auto", no_credentials="x"), ["not-checked kubernetes.no-credentials"]),
    ("no credentials, required", kubernetes.judge, kubernetes.KubeFacts("yes", no_credentials="x"), ["problem kubernetes.no-credentials"]),
    ("lost", kubernetes.judge, kubernetes.KubeFacts("auto", host="h", lost="x"), ["problem kubernetes.lost"]),
    ("credentials rejected", kubernetes.judge, kubernetes.KubeFacts("auto", host="h", refused="x", status=401), ["problem kubernetes.unauthorized"]),
    ("refused", kubernetes.judge, kubernetes.KubeFacts("auto", host="h", refused="x", status=403), ["problem kubernetes.refused"]),
    ("old version", kubernetes.judge, kubernetes.KubeFacts("auto", host="h", version="v1.19.4"), ["warning kubernetes.old"]),
    ("met", kubernetes.judge, kubernetes.KubeFacts("auto", host="h", version="v1.20.2"), ["ok kubernetes.ok"]),
    ("and known", kubernetes.judge, kubernetes.KubeFacts("auto", host="h", version="v1.31.0+k3s1", user="me"), ["ok kubernetes.as"]),
    ("nobody to ask", rights.judge, None, ["not-checked rights.nobody"]),
    ("all rights", rights.judge, (RightReview(MAY, True),), ["ok rights.ok"]),
    ("no answer", rights.judge, (RightReview(MAY, None, "x"),), ["warning rights.unknown"]),
    ("two verbs, one resource", rights.judge, (RightReview(MAY, True), *(RightReview(each, False) for each in NO_EVENTS)), ["problem rights.missing"]),
    ("addresses unknown", agents.judge_found, AgentsFacts(unknown="x"), ["not-checked agents.unknown"]),
    ("not started yet", agents.judge_found, AgentsFacts((silent("here", "refused"),), local=True), ["not-checked agents.none-here"]),
    ("all agents", agents.judge_found, polled(agent("gpu1"), agent("gpu2")), ["ok agents.answer-of"]),
    ("without Kubernetes", agents.judge_found, polled(agent("gpu1"), gpu_nodes=None), ["ok agents.answer"]),
    ("none", agents.judge_found, polled(), ["problem agents.none"]),
    ("none, no GPUs", agents.judge_found, polled(gpu_nodes=()), ["warning agents.no-gpus"]),
    ("one is missing", agents.judge_found, polled(agent("gpu1")), ["problem agents.missing"]),
    ("its pod is not running", agents.judge_found, polled(agent("gpu1"), waiting=("gpu2",)), ["problem agents.waiting"]),
    ("silent agents by cause", agents.judge_found, polled(silent("gpu1", "timeout"), silent("gpu2", "token")), ["problem agents.token", "problem agents.timeout"]),
    ("a silent agent of an unknown node does not count as missing", agents.judge_found, polled(PolledAgent("10.0.0.1:9835", None, "timeout")), ["problem agents.timeout"]),
    ("no agent answers", agents.judge_readings, polled(silent("gpu1", "timeout")), ["not-checked agents.nobody"]),
    ("all is read", agents.judge_readings, polled(agent("gpu1", collector("gpu"), collector("xid", "absent"))), ["ok agents.read"]),
    ("no driver on a GPU node", agents.judge_readings, polled(agent("gpu1", collector("gpu", "absent"))), ["problem agents.no-cards"]),
    ("no driver on a CPU node", agents.judge_readings, polled(agent("cpu1", collector("gpu", "absent"))), ["ok agents.read"]),
    ("hung is not failing", agents.judge_readings, polled(agent("gpu1", collector("disk", "failed", hung_since=NOW - 60))), ["problem agents.hung"]),
    ("failing", agents.judge_readings, polled(agent("gpu1", collector("disk", "failed", message="x"))), ["problem agents.failing"]),
    ("stale", agents.judge_readings, polled(agent("gpu1", collector("disk", succeeded_at=NOW - 31))), ["problem agents.stale"]),
    ("not old enough", agents.judge_readings, polled(agent("gpu1", collector("disk", succeeded_at=NOW - 29))), ["ok agents.read"]),
    ("one version", agents.judge_versions, polled(agent("gpu1")), ["ok agents.same-version"]),
    ("two versions", agents.judge_versions, polled(agent("gpu1"), agent("gpu2", version="0.9")), ["warning agents.version"]),
    ("no version", agents.judge_versions, polled(), ["not-checked agents.nobody"]),
    ("GPUs", driver.judge, driver.DriverFacts(version="550", gpus=8, on_bus=8), ["ok nvml.ok"]),
    ("no GPUs", driver.judge, driver.DriverFacts(missing="x", on_bus=0), ["ok nvml.no-cards"]),
    ("GPUs without a driver", driver.judge, driver.DriverFacts(missing="x", on_bus=8), ["problem nvml.missing"]),
    ("a broken driver", driver.judge, driver.DriverFacts(broken="x"), ["problem nvml.broken"]),
    ("GPUs refused and lost", driver.judge, driver.DriverFacts(gpus=6, refused=(1,), lost=(2,), on_bus=8), ["problem nvml.refused", "problem nvml.lost"]),
    ("fewer GPUs than on the bus", driver.judge, driver.DriverFacts(gpus=7, on_bus=8), ["warning nvml.fewer"]),
    ("a runtime", sockets.judge_runtimes, (RuntimeSocket("/a", "ok"), RuntimeSocket("/b", "absent")), ["ok runtimes.ok"]),
    ("no runtime", sockets.judge_runtimes, (RuntimeSocket("/a", "absent"),), ["warning runtimes.none"]),
    ("no socket", sockets.judge_runtimes, (), ["not-checked runtimes.not-configured"]),
    ("denied and dead", sockets.judge_runtimes, (RuntimeSocket("/a", "denied"), RuntimeSocket("/b", "dead")), ["problem runtimes.denied", "problem runtimes.dead"]),
    ("a kubelet", sockets.judge_kubelet, KubeletFacts("/s", True, True, True, 0), ["ok kubelet.ok"]),
    ("no kubelet", sockets.judge_kubelet, KubeletFacts("/s"), ["not-checked kubelet.none"]),
    ("a silent one", sockets.judge_kubelet, KubeletFacts("/s", True, True, True, None, "x"), ["problem kubelet.silent"]),
    ("only its file", sockets.judge_kubelet, KubeletFacts("/s", True, has_checkpoint=True), ["warning kubelet.checkpoint"]),
    ("not even that", sockets.judge_kubelet, KubeletFacts("/s", True), ["problem kubelet.no-socket"]),
    ("all processes", node.judge_processes, node.ProcessFacts("/proc", True, False, True), ["ok processes.ok"]),
    ("without hostPID", node.judge_processes, node.ProcessFacts("/proc", False, False, True), ["problem processes.own-only"]),
    ("not in a container", node.judge_processes, node.ProcessFacts("/proc", False, False, False), ["warning processes.own-only"]),
    ("hidepid", node.judge_processes, node.ProcessFacts("/proc", True, True, False), ["problem processes.hidden"]),
    ("a log", node.judge_kernel_log, node.KernelLogFacts("/dev/kmsg"), ["ok kernel-log.ok"]),
    ("a log without permission", node.judge_kernel_log, node.KernelLogFacts("/dev/kmsg", "x", True), ["warning kernel-log.denied"]),
    ("no log", node.judge_kernel_log, node.KernelLogFacts("/dev/kmsg", "x"), ["warning kernel-log.error"]),
    ("all capabilities", node.judge_capabilities, (), ["ok capabilities.ok"]),
    ("a capability missing", node.judge_capabilities, ("SYSLOG",), ["warning capabilities.missing"]),
    ("cgroup v2", node.judge_cgroup, node.CgroupFacts(2, "/sys"), ["ok cgroup.ok"]),
    ("no cgroups", node.judge_cgroup, node.CgroupFacts(None, "/sys"), ["problem cgroup.none"]),
    ("no receivers", receivers.judge, ReceiverFacts(), ["warning receivers.none"]),
    ("reached", receivers.judge, ReceiverFacts((Reachability("wecom", "h"),)), ["ok receivers.ok"]),
    ("test message accepted", receivers.judge, ReceiverFacts((Reachability("wecom", "h"),), (SentMessage("wecom", True, "ok"),)), ["ok receivers.sent"]),
    ("test message rejected", receivers.judge, ReceiverFacts((Reachability("wecom", "h"),), (SentMessage("wecom", False, "x"),)), ["problem receivers.not-sent"]),
    ("sending failed", receivers.judge, ReceiverFacts((Reachability("wecom", "h"),), not_sent="x"), ["problem receivers.nobody-sent"]),
    ("address unknown", receivers.judge, ReceiverFacts((Reachability("apprise", "?", unseen=True),)), ["not-checked receivers.unseen"]),
    *((each, receivers.judge, ReceiverFacts((Reachability("wecom", "h", each),)), [f"problem receivers.{each}"]) for each in receivers.TROUBLES),
    ("no services", receivers.judge_services, (), ["not-checked services.none"]),
    ("services", receivers.judge_services, (Reachability("Alertmanager", "h"),), ["ok services.ok"]),
    ("not ready, not reachable", receivers.judge_services, (Reachability("a", "h", "answer"), Reachability("b", "h", "dns")), ["problem services.answer", "problem services.lost"]),
    ("state", state.judge, (StateDirectory("/s", True, free=9 * GIB),), ["ok state.ok"]),
    ("not created yet", state.judge, (StateDirectory("/s", False, free=9 * GIB),), ["ok state.not-yet"]),
    ("not writable", state.judge, (StateDirectory("/s", True, "x"),), ["problem state.not-writable"]),
    ("low on space", state.judge, (StateDirectory("/s", True, free=GIB // 2),), ["warning state.full"]),
    ("out of space", state.judge, (StateDirectory("/s", True, free=0),), ["problem state.full"]),
    ("space unknown", state.judge, (StateDirectory("/s", True),), ["ok state.ok"]),
    ("no inodes", state.judge, (StateDirectory("/s", True, free=9 * GIB, free_inodes=0),), ["problem state.no-inodes"]),
    ("no log", state.judge, (StateDirectory("/s", True, no_log="x", filesystem="nfs4"),), ["problem state.no-log"]),
    ("on NFS", state.judge, (StateDirectory("/s", True, filesystem="nfs4"),), ["warning state.shared"]),
    ("one of two damaged", state.judge, (StateDirectory("/s", True, damaged=(("/s/a.db", "x"),)), StateDirectory("/t", True)), ["problem state.damaged", "ok state.ok"]),
    *((each, ports.judge, (ports.PortFacts("daemon.listen", "h:1", each),), [f"{'ok' if each in ('free', 'ours') else 'problem'} ports.{each}"]) for each in ("free", "ours", "taken", "denied", "no-address", "error")),
    ("synchronised", clock.judge, clock.ClockFacts(True, 0.4, (("gpu1", -0.5),)), ["ok clock.ok"]),
    ("synchronisation unknown", clock.judge, clock.ClockFacts(None), ["not-checked clock.unknown"]),
    ("not synchronised", clock.judge, clock.ClockFacts(False), ["warning clock.not-synchronised"]),
    ("slightly off", clock.judge, clock.ClockFacts(True, -4.0, (("gpu1", 4.0), ("gpu2", 0.0))), ["warning clock.api", "warning clock.agents"]),
    ("far off", clock.judge, clock.ClockFacts(True, 61.0, (("gpu1", -61.0),)), ["problem clock.api", "problem clock.agents"]),
    ("a zone", language.judge_zone, language.ZoneFacts("UTC", True), ["ok zone.ok"]),
    ("no zones", language.judge_zone, language.ZoneFacts("Asia/Shanghai", False), ["problem zone.unknown"]),
    ("an unknown TZ", language.judge_zone, language.ZoneFacts("UTC", True, "Mars/Base"), ["warning zone.given"]),
    ("Chinese", language.judge_locale, language.LocaleFacts("utf-8", True, True), ["ok locale.ok"]),
    ("no Chinese", language.judge_locale, language.LocaleFacts("ascii", False, True), ["warning locale.no-chinese"]),
    ("Chinese not wanted", language.judge_locale, language.LocaleFacts("ascii", False, False), ["ok locale.not-wanted"]),
]  # fmt: skip


@pytest.mark.parametrize(("name", "judge", "facts", "expect"), CASES, ids=[f"{i}-{c[0]}" for i, c in enumerate(CASES)])
def test_verdicts(name: str, judge: Callable[[Any], Verdicts], facts: Any, expect: list[str]) -> None:
    verdicts = judge(facts)
    assert [f"{verdict.status} {verdict.key}" for verdict in verdicts] == expect
    for lang in ("en", "zh"):
        for row in rows([CheckResult("config.file", verdicts)], lang):
            assert row.what
            assert "{" not in row.what
            assert bool(row.do) == (row.status in ("warning", "problem"))


def test_a_missing_right_is_named_with_its_role() -> None:
    verdicts = rights.judge(tuple(RightReview(each, False) for each in NO_EVENTS))
    (row,) = rows([CheckResult("kubernetes.rights", verdicts)], "en")
    assert row.what == "This account may not list, watch events."
    assert "gpuwarden-read" in (row.do or "")


def test_a_right_is_asked_for_as_rbac_knows_it() -> None:
    assert RequiredRight("create", "pods/eviction", ChartRole.CLEANUP).attributes == {
        "verb": "create",
        "resource": "pods",
        "subresource": "eviction",
    }
    assert RequiredRight("list", "queues.scheduling.volcano.sh", ChartRole.READ).attributes == {
        "verb": "list",
        "resource": "queues",
        "group": "scheduling.volcano.sh",
    }


@pytest.mark.parametrize(
    ("version", "wanted", "expect"),
    [
        ("8.1.7", ">=8.1", True),
        ("8.1", ">=8.1.0", True),
        ("8.0.9", ">=8.1", False),
        ("10.0", ">=9", True),
        ("4.0.0a1", ">=3.11,<4", False),
        ("3.11.0.post1", ">=3.11,<4", True),
        ("1.2", "", True),
        ("2.5", "~=2.4", True),
        ("3.0", "~=2.4", False),
        ("1.0", "!=1.0", False),
    ],
)
def test_versions(version: str, wanted: str, expect: bool) -> None:
    assert satisfies(version, wanted) is expect


def test_many_names_are_cut_short() -> None:
    names = [f"gpu{number}" for number in range(MAX_NAMES + 3)]
    assert joined(names[:2]) == "gpu0, gpu1"
    assert joined(names).endswith("gpu4, … (+3)")


def test_the_worst_counts() -> None:
    verdicts = state.judge((StateDirectory("/s", True), StateDirectory("/t", True, "x")))
    assert CheckResult("state.directories", ()).status is CheckStatus.OK
    assert CheckResult("state.directories", verdicts).status is CheckStatus.PROBLEM


def test_every_check_has_a_name_and_every_verdict_has_a_case() -> None:
    names = [check.name for check in CHECKS]
    assert len(set(names)) == len(names)
    wanted = {f"doctor.check.{name}" for name in names} | {f"doctor.group.{name.split('.')[0]}" for name in names}
    assert {key for key in CATALOGS["en"] if key.startswith(("doctor.check.", "doctor.group."))} == wanted
    judged = {verdict.key for _, judge, facts, _ in CASES for verdict in judge(facts)}
    known = {key.removeprefix("doctor.") for key in CATALOGS["en"] if key.startswith("doctor.")}
    sentences = {
        key for key in known if not key.endswith(".do") and key.split(".")[0] not in ("status", "group", "check")
    }
    by_troubles = {f"agents.{trouble}" for trouble in agents.TROUBLES}
    assert sentences - judged - by_troubles == {
        "fine",
        "summary",
        "below",
        "late",
        "broken",
        "no-config",
        "node.no-agent",
    }


def test_a_public_key_is_no_secret(tmp_path: Path) -> None:
    files = {}
    for setting in ("agent.actions.public_key_file", "daemon.cleanup.agents.private_key_file"):
        path = tmp_path / setting
        path.write_text("key")
        path.chmod(0o644)
        files[setting] = config.read_file(setting, str(path))
    (found,) = config.judge_files(config.FilesFacts(tuple(files.values())))
    assert found.values["setting"] == "daemon.cleanup.agents.private_key_file"
