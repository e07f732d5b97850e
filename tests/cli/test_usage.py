"""Errors in the language of the command."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import free_port
from tests.support.command import quiet_environment, run

ENGLISH = {"LC_ALL": "C"}
CHINESE = {"LC_ALL": "zh_CN.UTF-8"}


@pytest.mark.parametrize(
    ("arguments", "locale", "expected"),
    [
        (["why"], ENGLISH, ["Usage: gpuwarden why", "Error: Missing argument 'NAME'."]),
        (
            ["why", "--lang", "zh"],
            ENGLISH,
            ["用法：gpuwarden why", "帮助：'gpuwarden why --help'", "错误：缺少参数 'NAME'。"],
        ),
        (["why"], CHINESE, ["错误：缺少参数 'NAME'。"]),
        (["why", "--lang=en"], CHINESE, ["Error: Missing argument 'NAME'."]),
        (["nonsense"], CHINESE, ["用法：gpuwarden [OPTIONS]", "错误：没有命令 'nonsense'。"]),
        (["fits", "--gpus", "x", "--lang", "zh"], ENGLISH, ["错误：gpus 是 1 到 10000 的数字，不能是 'x'"]),
        (["status", "--lang", "fr"], CHINESE, ["错误：'--lang' 的值无效：'fr' 不在可选值之中：'en'、'zh'。"]),
        (["status", "--lang"], CHINESE, ["错误：选项 '--lang' 需要一个值。"]),
    ],
)
def test_wrong_usage(arguments: list[str], locale: dict[str, str], expected: list[str], tmp_path: Path) -> None:
    result = run(*arguments, environ=quiet_environment(tmp_path) | locale)
    assert (result.returncode, result.stdout) == (2, "")
    assert [text for text in expected if text not in result.stderr] == []


@pytest.mark.parametrize("arguments", [["check-config"], ["status", "--config"]], ids=" ".join)
def test_a_wrong_configuration(arguments: list[str], tmp_path: Path) -> None:
    file = tmp_path / "c.yml"
    file.write_text("log_level: loud\nagent:\n  listn: 3\n")
    result = run(*arguments, str(file), "--lang", "zh", environ=quiet_environment(tmp_path))
    assert result.returncode == 2
    assert f"{file}:1: log_level: 'loud' 不在可选值之中：" in result.stderr
    assert f"{file}:3: agent.listn: 没有这个名字；是不是 'listen'？" in result.stderr


def test_no_daemon(tmp_path: Path) -> None:
    address = f"127.0.0.1:{free_port()}"
    result = run("alerts", "list", "--lang", "zh", environ=quiet_environment(tmp_path, DAEMON__LISTEN=address))
    assert result.returncode == 3
    assert result.stderr == (
        f"gpuwarden: {address} 上没有 daemon 响应；请用 gpuwarden daemon 启动，或修正 daemon.listen\n"
    )
