"""Findings of a real daemon: as JSON, in `gpuwarden status`, on the page, and after kill -9."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest

from monitor.cluster.view_memory import ViewMemoryFile
from monitor.facts.cluster import ClusterView, GpuView
from monitor.present.findings import NOT_EVALUATED, LocalizedFinding
from tests.cluster.living import two_gpus
from tests.support import free_port, wait_until
from tests.support.command import STOP_LIMIT, command, get, quiet_environment, run, running
from tests.support.fake_agents import FakeAgent, reports


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    nobody = free_port()
    settings = quiet_environment(
        tmp_path / "state",
        DAEMON__LISTEN=f"127.0.0.1:{free_port()}",
        DAEMON__SERVICES=f"[{{name: portal, url: 'http://127.0.0.1:{nobody}', interval: 200ms}}]",
        DAEMON__RULES__SERVICE_DOWN__AFTER="0s",
    )
    return settings | {"LC_ALL": "C.UTF-8"}


@contextmanager
def daemon(environ: dict[str, str]) -> Iterator[subprocess.Popen[str]]:
    with running(command("daemon"), environ, stdout=subprocess.DEVNULL) as process:
        wait_until(lambda: findings(environ), 15, "something is found")
        yield process


def findings(environ: dict[str, str], lang: str = "en") -> list[LocalizedFinding]:
    """Findings of the daemon; empty before the first evaluation."""
    try:
        status, _, body = get(f"http://{environ['GPUWARDEN_DAEMON__LISTEN']}/v1/findings?lang={lang}")
    except OSError:
        return []
    return msgspec.json.decode(body, type=list[LocalizedFinding]) if status == 200 else []


def test_what_is_found_is_told_and_shown(environ: dict[str, str]) -> None:
    with daemon(environ) as process:
        (found,) = findings(environ)
        assert (found.rule, found.cause, found.labels) == ("service-down", "refused", {"service": "portal"})
        assert "portal 拒绝连接" in findings(environ, "zh")[0].headline
        shown = run("status", environ=environ)
        assert shown.returncode == 1
        assert shown.stdout.index("\nFindings\n") < shown.stdout.index("\nNodes\n")
        assert "portal has refused connections for" in " ".join(shown.stdout.split())
        assert "拒绝连接" in run("status", "--lang", "zh", environ=environ).stdout
        whole = json.loads(run("status", "--json", environ=environ).stdout)
        assert [each["labels"] for each in whole["findings"]] == [{"service": "portal"}]
        assert "portal has refused connections for" in get(f"http://{environ['GPUWARDEN_DAEMON__LISTEN']}/")[2]
        process.send_signal(signal.SIGTERM)
        assert process.wait(STOP_LIMIT) == 0


def test_a_daemon_that_was_killed_remembers_since_when(environ: dict[str, str]) -> None:
    with daemon(environ) as process:
        (first,) = findings(environ)
        wait_until(lambda: os.path.exists(f"{environ['GPUWARDEN_DAEMON__STATE']}/findings.json"), 5, "it is saved")
        process.kill()
        process.wait(60)
    with daemon(environ):
        (again,) = findings(environ)
    assert again.since == first.since


def cards(environ: dict[str, str]) -> list[GpuView]:
    try:
        status, _, body = get(f"http://{environ['GPUWARDEN_DAEMON__LISTEN']}/v1/view")
    except OSError:
        return []
    return list(msgspec.json.decode(body, type=ClusterView).gpus) if status == 200 else []


def test_a_daemon_that_was_killed_remembers_since_when_a_card_is_idle(environ: dict[str, str], tmp_path: Path) -> None:
    with FakeAgent(reports(two_gpus("n1", "bert"))) as agent:
        environ |= {"GPUWARDEN_DAEMON__AGENTS__STATIC": f"[{agent.target}]"}
        with daemon(environ) as process:
            wait_until(lambda: len(cards(environ)) == 2, 15, "the cards are seen")
            before = [(card.since, card.idle_since) for card in cards(environ)]
            saved = ViewMemoryFile(str(tmp_path / "state"))
            wait_until(lambda: len(saved.load().cards) == 2, 20, "it is saved, with the cards in it")
            process.kill()
            process.wait(60)
        with daemon(environ):
            wait_until(lambda: len(cards(environ)) == 2, 15, "the cards are seen again")
            assert [(card.since, card.idle_since) for card in cards(environ)] == before
    assert before[0][1] is not None


def test_without_a_daemon_it_is_not_said_that_nothing_is_wrong(environ: dict[str, str]) -> None:
    with FakeAgent(reports("gpu-07")) as agent:
        alone = environ | {"GPUWARDEN_DAEMON__AGENTS__STATIC": f"[{agent.target}]"}
        shown = run("status", "--lang", "en", environ=alone)
        assert NOT_EVALUATED in " ".join(shown.stdout.split())
        assert json.loads(run("status", "--json", environ=alone).stdout)["findings"] is None
