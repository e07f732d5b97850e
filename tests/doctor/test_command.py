"""The command `gpuwarden doctor`, and its checks against fake servers."""

from __future__ import annotations

import io
import json
import socket
import sqlite3
import subprocess
import time
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import msgspec
import pytest
import yaml

from monitor.config.file import load
from monitor.doctor import present
from monitor.doctor.context import DoctorContext, DoctorRequest, Terminal
from monitor.doctor.present import VerdictRow, print_results
from monitor.doctor.registry import CHECKS
from monitor.doctor.run import run as run_checks
from monitor.facts.node import CollectorFact, NodeSnapshot
from tests.doctor.fake_kube import TOKEN, FakeKube, serving
from tests.nvml import FakeNvml
from tests.support import free_port, wait_until
from tests.support.command import command, quiet_environment, run, running
from tests.support.fake_agents import FakeAgent, answers, reports, says_nothing
from tests.support.receivers.http_server import LocalServer

MAX_SECONDS = 60.0  # ten on an idle machine
Outcomes = dict[str, list[tuple[str, str, str | None]]]
KEY = "0123abcd-key-of-the-robot"


def settings(folder: Path, **more: str) -> dict[str, str]:
    """Environment that hides the GPUs, the kubelet and the kubeconfig of this machine."""
    absent = {"AGENT__PATHS__KUBELET": "/nonexistent/kubelet"}
    return quiet_environment(folder / "state", **(absent | more)) | {"KUBECONFIG": "/nonexistent", "LC_ALL": "C.UTF-8"}


def config_file(folder: Path, **daemon: object) -> str:
    path = folder / "gpuwarden.yml"
    path.write_text(yaml.safe_dump({"daemon": daemon}))
    path.chmod(0o600)
    return str(path)


def run_command(environ: dict[str, str], *arguments: str) -> tuple[int, Outcomes, str]:
    """Exit code of the command, its verdicts by check, and its whole output."""
    started = time.monotonic()
    completed = run("doctor", "--json", "--lang", "en", *arguments, environ=environ)
    assert time.monotonic() - started < MAX_SECONDS
    assert "Traceback" not in completed.stderr, completed.stderr
    assert completed.stdout, (completed.returncode, completed.stderr)
    rows = msgspec.json.decode(completed.stdout, type=list[VerdictRow])
    assert all(row.keys() == {"check", "status", "what", "do"} for row in json.loads(completed.stdout))
    return completed.returncode, by_check(rows), completed.stdout + completed.stderr


def run_in_process(environ: dict[str, str], path: str) -> tuple[Outcomes, str]:
    """Verdicts by check and whole output, in this process, which is faster."""
    config = load(path, environ)
    request = DoctorRequest(path, config, (), Terminal("en", "utf-8"), None, environ)
    results = run_checks(CHECKS, DoctorContext(request))
    printed = io.StringIO()
    print_results(results, "en", printed)
    rows = present.rows(results, "en")
    return by_check(rows), printed.getvalue() + str(rows)


def by_check(rows: Iterable[VerdictRow]) -> Outcomes:
    found: Outcomes = {}
    for row in rows:
        found.setdefault(row.check, []).append((row.status, row.what, row.do))
    return found


@contextmanager
def unresponsive_server() -> Iterator[int]:
    """Port of a server that accepts connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def test_a_machine_with_nothing(tmp_path: Path) -> None:
    started = time.monotonic()
    completed = run("doctor", "--lang", "en", environ=settings(tmp_path))
    assert time.monotonic() - started < MAX_SECONDS
    assert (completed.returncode, completed.stderr) == (0, "")
    assert "\x1b" not in completed.stdout  # no colours without a terminal
    for words in (
        "Configuration",
        "not checked",
        "No receiver is configured: alerts are not delivered.",
        "→ Add a receiver",
    ):
        assert words in completed.stdout


def test_in_chinese(tmp_path: Path) -> None:
    completed = run("doctor", "--lang", "zh", environ=settings(tmp_path))
    assert (completed.returncode, completed.stderr) == (0, "")
    for words in ("配置", "未检查", "没有配置接收者：告警不会发出。", "→ "):
        assert words in completed.stdout


def test_chinese_where_the_terminal_has_none(tmp_path: Path) -> None:
    completed = run("doctor", "--lang", "zh", "--json", environ=settings(tmp_path) | {"PYTHONIOENCODING": "ascii"})
    (row,) = [row for row in json.loads(completed.stdout) if row["check"] == "language.locale"]
    assert (completed.returncode, completed.stderr, row["status"]) == (0, "", "warning")


def test_a_broken_configuration(tmp_path: Path) -> None:
    path = tmp_path / "broken.yml"
    path.write_text("daemon:\n  listn: 1\n  cycle: never\n")
    code, found, _ = run_command(settings(tmp_path), "--config", str(path))
    assert code == 2
    assert [status for status, _, _ in found["config.file"]] == ["problem", "problem"]
    assert f"{path}:2: daemon.listn" in found["config.file"][0][1]
    assert found["agents.found"] == [("not-checked", "The configuration cannot be read.", None)]
    assert found["packages.versions"][0][0] == "ok"


def test_wrong_usage(tmp_path: Path) -> None:
    assert run("doctor", "--no-such-option", environ=settings(tmp_path)).returncode == 2


def test_secrets_are_guarded_and_never_printed(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("the-token-of-the-daemon-itself\n")
    token.chmod(0o644)
    with unresponsive_server() as port:
        receivers = [
            {"kind": "wecom", "url": f"https://127.0.0.1:{port}/cgi-bin/webhook/send?key={KEY}"},
            {"kind": "webhook", "url": f"http://user:{KEY}@127.0.0.1:1/{KEY}", "token": "token-of-a-webhook"},
            {"kind": "apprise", "url": f"tgram://{KEY}/chat"},
        ]
        silences = {"url": f"http://127.0.0.1:1/{KEY}", "token": "token-of-alertmanager"}
        path = config_file(tmp_path, token_file=str(token), alerts={"receivers": receivers, "alertmanager": silences})
        Path(path).chmod(0o644)
        found, printed = run_in_process(settings(tmp_path), path)
    for secret in (KEY, "the-token-of-the-daemon-itself", "token-of-a-webhook", "token-of-alertmanager"):
        assert secret not in printed
    assert [status for status, _, _ in found["config.files"]] == ["warning", "warning"]
    assert "daemon.token_file" in found["config.files"][0][1]
    assert [what for _, what, _ in found["receivers.reached"]] == [
        f"wecom: 127.0.0.1:{port} does not respond.",
        "webhook: 127.0.0.1:1 refuses the connection.",
        "apprise cannot be checked without sending; use --send.",
    ]
    assert [status for status, _, _ in found["receivers.services"]] == ["problem"]


def test_nothing_is_sent_unless_that_is_asked_for(tmp_path: Path) -> None:
    with LocalServer() as server:
        path = config_file(tmp_path, alerts={"receivers": [{"kind": "webhook", "url": f"{server.base}/{KEY}"}]})
        found, _ = run_in_process(settings(tmp_path), path)
        assert (found["receivers.reached"][0][0], server.asked) == ("ok", [])
        code, found, printed = run_command(settings(tmp_path), "--config", path, "--send")
        assert (code, len(server.asked)) == (0, 1)
        assert found["receivers.reached"][0][1] == "All 1 accepted a message: webhook."
        assert KEY not in printed


def test_all_rights_and_the_agents_of_a_cluster(tmp_path: Path) -> None:
    broken = CollectorFact(name="disk", outcome="failed", interval_seconds=15, message="no such thing")
    blind = CollectorFact(name="gpu", outcome="absent", interval_seconds=5)
    snapshot = NodeSnapshot(node="127.0.0.1", at=time.time() - 100, agent_version="0.0.1", collectors=(broken, blind))
    nodes = [
        {"metadata": {"name": name, "uid": name}, "status": {"capacity": {"nvidia.com/gpu": "8"}}}
        for name in ("gpu1", "gpu2")
    ]
    with FakeAgent(reports(snapshot)) as agent, serving(FakeKube(ahead=-120)) as kube:
        label = {"app.kubernetes.io/name": "gpuwarden-agent"}
        kube.lists["/api/v1/nodes"] = nodes
        kube.lists["/api/v1/pods"] = [
            {
                "metadata": {"name": "agent-1", "namespace": "lab", "uid": "1", "labels": label},
                "spec": {"nodeName": "gpu1", "containers": [{"name": "agent"}]},
                "status": {"phase": "Running", "podIP": "127.0.0.1"},
            }
        ]
        kubernetes = {"enabled": "yes", "kubeconfig": kube.kubeconfig(tmp_path)}
        path = config_file(tmp_path, agents={"port": agent.port})
        environ = settings(tmp_path, DAEMON__KUBERNETES=json.dumps(kubernetes), DAEMON__KUBERNETES__ENABLED="yes")
        code, found, printed = run_command(environ, "--config", path)
    assert code == 1
    assert TOKEN not in printed
    assert "context here, as system:serviceaccount:lab:gpuwarden" in found["kubernetes.api"][0][1]
    assert found["kubernetes.rights"] == [("ok", "All 14 required permissions are granted.", None)]
    assert [what for _, what, _ in found["agents.found"]] == ["No agent runs on 1 of 2 nodes with GPUs: gpu2."]
    assert [what for _, what, _ in found["agents.readings"]] == [
        "1 node has GPUs in Kubernetes, but the agent finds no driver: gpu1.",
        "The collector disk fails on 1 node: gpu1 (no such thing).",
    ]
    assert found["agents.versions"][0][0] == "warning"
    offsets = [what for _, what, _ in found["clock.offsets"] if "differ by" in what]
    assert len(offsets) == 2  # of the API server and the agent


def test_each_missing_right_is_named_with_its_role(tmp_path: Path) -> None:
    lease = {"namespace": "lab"}
    policies = [
        {"kind": "gpus", "name": "g", "cron": "0 3 * * *", "mode": "enforce"},
        {"kind": "pods", "name": "p", "cron": "0 3 * * *", "mode": "enforce"},
    ]
    forbidden = (
        "update leases.coordination.k8s.io",
        "list events",
        "watch events",
        "create pods/eviction",
        "delete pods",
        "list workloads.kueue.x-k8s.io",
        "watch resourceslices.resource.k8s.io",
    )
    with serving(FakeKube(*forbidden)) as kube:
        kube.groups += ["kueue.x-k8s.io", "resource.k8s.io"]
        path = config_file(tmp_path, cleanup={"policies": policies}, lease=lease, kubernetes={"enabled": "yes"})
        environ = settings(
            tmp_path, DAEMON__KUBERNETES__ENABLED="yes", DAEMON__KUBERNETES__KUBECONFIG=kube.kubeconfig(tmp_path)
        )
        found, _ = run_in_process(environ, path)
        assert "list queues.scheduling.volcano.sh" not in kube.reviewed  # the cluster has no Volcano
        assert "patch nodes" not in kube.reviewed  # and no account may cordon nodes
    missing = {(what, (do or "").split("the role ")[1].split()[0]) for _, what, do in found["kubernetes.rights"]}
    assert missing == {
        ("This account may not list, watch events.", "gpuwarden-read"),
        ("This account may not list workloads.kueue.x-k8s.io.", "gpuwarden-read"),
        ("This account may not watch resourceslices.resource.k8s.io.", "gpuwarden-read"),
        ("This account may not update leases.coordination.k8s.io.", "gpuwarden-lease"),
        ("This account may not create pods/eviction.", "gpuwarden-cleanup"),
        ("This account may not delete pods.", "gpuwarden-cleanup"),
    }


def test_everything_hangs(tmp_path: Path) -> None:
    with (
        FakeAgent(says_nothing) as agent,
        unresponsive_server() as receiver,
        unresponsive_server() as api,
        unresponsive_server() as page,
    ):
        kubeconfig = FakeKube()
        kubeconfig.port = api
        robot = f"https://127.0.0.1:{receiver}/send?key={KEY}"
        path = config_file(
            tmp_path, agents={"static": [agent.target]}, alerts={"receivers": [{"kind": "wecom", "url": robot}]}
        )
        environ = settings(
            tmp_path,
            DAEMON__LISTEN=f"127.0.0.1:{page}",
            DAEMON__KUBERNETES__ENABLED="yes",
            DAEMON__KUBERNETES__KUBECONFIG=kubeconfig.kubeconfig(tmp_path),
        )
        nvml = FakeNvml(tmp_path / "nvml", gpus=1)
        nvml.hang()
        code, found, _ = run_command(environ | nvml.environment(), "--config", path)
    assert code == 1
    assert found["node.driver"] == [("problem", "This check did not finish within 5 s.", found["node.driver"][0][2])]
    for check in ("kubernetes.api", "agents.found", "receivers.reached", "ports.listen"):
        assert found[check][0][0] == "problem", found[check]
    assert "Another program listens" in found["ports.listen"][0][1]


@pytest.mark.parametrize(
    ("answer", "words"),
    [(answers(b"no", 401), "reject the daemon's token"), (answers(b"{}"), "is not a compatible agent")],
)
def test_agents_that_do_not_like_us(tmp_path: Path, answer: object, words: str) -> None:
    with FakeAgent(answer) as first, FakeAgent(answer) as second:  # type: ignore[arg-type]  # a behaviour
        found, _ = run_in_process(
            settings(tmp_path), config_file(tmp_path, agents={"static": [first.target, second.target]})
        )
    assert words in found["agents.found"][0][1]


def test_a_damaged_database(tmp_path: Path) -> None:
    state = tmp_path / "state"
    state.mkdir()
    with closing(sqlite3.connect(state / "alerts.db")) as good:
        good.execute("CREATE TABLE t (a)")
    (state / "record.db").write_bytes(b"this is no database" * 100)
    found, _ = run_in_process(settings(tmp_path), config_file(tmp_path))
    ((status, what, _),) = found["state.directories"]
    assert (status, "record.db" in what) == ("problem", True)
    assert sorted(file.name for file in state.iterdir()) == ["alerts.db", "record.db"]  # nothing was created


def listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def test_ports_that_are_ours(tmp_path: Path) -> None:
    port = free_port()
    environ = settings(tmp_path, AGENT__LISTEN=f"127.0.0.1:{port}")
    with running(command("agent"), environ, stdout=subprocess.DEVNULL) as agent:
        wait_until(lambda: listens(port) or agent.poll() is not None, 60, "the agent listens")
        found, _ = run_in_process(environ, config_file(tmp_path))
    assert f"127.0.0.1:{port} is used by gpuwarden." in [what for _, what, _ in found["ports.listen"]]
    assert found["agents.found"][0] == ("ok", "1 agent responds.", None)
    assert found["node.cgroups"][0][0] == "ok"  # an agent runs here, so this node is checked


def test_the_cards_of_this_node(tmp_path: Path) -> None:
    nvml = FakeNvml(tmp_path / "nvml", gpus=8)
    environ = settings(tmp_path) | nvml.environment()
    _, found, _ = run_command(environ)
    assert (found["node.driver"][0][0], "8 GPUs" in found["node.driver"][0][1]) == ("ok", True)
