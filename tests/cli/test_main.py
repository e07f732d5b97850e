from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

import monitor
from monitor.facts import NodeSnapshot
from tests.cli.leftovers import english_in
from tests.support.command import quiet_environment, run


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    return quiet_environment(tmp_path / "state")


def test_the_version() -> None:
    assert run("--version").stdout == f"gpuwarden, version {monitor.__version__}\n"


@pytest.mark.parametrize(
    "arguments",
    [["nonsense"], ["up", "--nonsense"], ["check-config"], ["agent", "argument"], ["snapshot", "--config"]],
    ids=" ".join,
)
def test_wrong_usage_is_code_2(arguments: list[str]) -> None:
    result = run(*arguments)
    assert (result.returncode, result.stdout) == (2, "")
    assert "Error: " in result.stderr
    assert "Traceback" not in result.stderr


def test_help_loads_nothing_heavy() -> None:
    heavy = "('pydantic', 'rich', 'yaml', 'starlette', 'uvicorn', 'h2', 'kubernetes')"
    code = f"import sys, monitor.cli.main; print([name for name in {heavy} if name in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_a_good_file(tmp_path: Path) -> None:
    file = tmp_path / "gpuwarden.yml"
    file.write_text("agent: {node_name: gpu-01, mounts: [/mnt/a]}\n")
    result = run("check-config", str(file), environ={})
    assert (result.returncode, result.stderr) == (0, "")
    first, zone, *lines = result.stdout.splitlines()
    assert first == f"ok: {file}"
    assert zone.startswith("Time zone: ")
    assert lines == [
        "Agent: node gpu-01, on 127.0.0.1:9835 without a token, 18 of 18 collectors, 1 mount, 0 registries.",
        "Page: on 127.0.0.1:9836; log level info.",
        "Alerts: not sent, because no receiver is configured.",
        "Cleanup: no policy is configured.",
        "Report: not scheduled.",
    ]
    chinese = run("check-config", "--lang", "zh", str(file), environ={}).stdout
    assert chinese.startswith(f"配置正确：{file}\n时区：")
    assert english_in(chinese, [str(file), "info"]) == []
    assert json.loads(run("check-config", "--json", str(file), environ={}).stdout) == {
        "file": str(file),
        "ok": True,
        "problems": [],
    }


@pytest.mark.parametrize(
    "words", [["check-config"], ["agent", "--config"], ["up", "--config"], ["snapshot", "--config"]]
)
def test_a_bad_file_is_code_2_with_everything_that_is_wrong_on_stderr(tmp_path: Path, words: list[str]) -> None:
    file = tmp_path / "gpuwarden.yml"
    file.write_text("log_level: loud\nagent:\n  listn: x\n")
    result = run(*words, str(file), environ={})
    assert (result.returncode, result.stdout) == (2, "")
    count = ["2 errors"] if words == ["check-config"] else []
    assert result.stderr.splitlines() == [
        f"{file}:1: log_level: 'loud' is not one of 'debug', 'info', 'warning' or 'error'",
        f"{file}:3: agent.listn: unknown key; did you mean 'listen'?",
        *count,
    ]
    chinese = run("check-config", str(file), "--lang", "zh", environ={})
    assert chinese.stderr.splitlines()[-1] == "共 2 处错误"


def test_a_bad_file_as_json(tmp_path: Path) -> None:
    file = tmp_path / "gpuwarden.yml"
    file.write_text("agent:\n  listn: x\n")
    result = run("check-config", "--json", str(file), environ={})
    problem = {
        "source": str(file),
        "line": 2,
        "path": "agent.listn",
        "message": "unknown key; did you mean 'listen'?",
    }
    assert (result.returncode, result.stderr) == (2, "")
    assert json.loads(result.stdout) == {"file": str(file), "ok": False, "problems": [problem]}


def test_the_file_named_by_the_environment_is_read(tmp_path: Path) -> None:
    result = run("snapshot", environ={"GPUWARDEN_CONFIG": str(tmp_path / "none.yml")})
    assert (result.returncode, result.stderr) == (2, f"{tmp_path}/none.yml: there is no such file\n")


def test_a_snapshot_for_people(environ: dict[str, str]) -> None:
    result = run("snapshot", environ=environ)
    assert result.returncode == 0, result.stdout
    assert result.stdout.startswith("node test-node, ")
    for title in ("GPUs", "Disks", "Shared memory (/dev/shm)", "Image caches", "Collectors"):
        assert f"\n{title}" in result.stdout
    assert result.stderr == ""


def test_a_snapshot_for_programs(environ: dict[str, str]) -> None:
    result = run("snapshot", "--json", environ=environ)
    snapshot = msgspec.json.decode(result.stdout, type=NodeSnapshot)
    assert snapshot.node == "test-node"
    assert snapshot.disk
    assert not any(fact.outcome == "starting" for fact in snapshot.collectors)


def test_a_snapshot_takes_no_port_that_an_agent_needs(environ: dict[str, str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        environ["GPUWARDEN_AGENT__LISTEN"] = f"127.0.0.1:{taken.getsockname()[1]}"
        assert run("snapshot", "--json", environ=environ).returncode == 0


def test_a_snapshot_with_something_unreadable_is_code_1(environ: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "proc").mkdir()
    result = run("snapshot", environ=environ | {"GPUWARDEN_AGENT__PATHS__PROC": str(tmp_path / "proc")})
    assert result.returncode == 1
    assert "failed" in result.stdout


@pytest.mark.parametrize(
    ("shell", "word", "position"), [("bash", "complete", "1"), ("zsh", "compdef", "1"), ("fish", "complete", "to")]
)
def test_completion_of_the_documented_shells(shell: str, word: str, position: str) -> None:
    script = run(environ=dict(os.environ) | {"_GPUWARDEN_COMPLETE": f"{shell}_source"})
    assert script.returncode == 0, script.stderr
    assert word in script.stdout
    asked = {"_GPUWARDEN_COMPLETE": f"{shell}_complete", "COMP_WORDS": "gpuwarden to", "COMP_CWORD": position}
    assert "top" in run(environ=dict(os.environ) | asked).stdout
