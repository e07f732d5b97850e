"""`gpuwarden init` in a terminal and without one, with a real WeCom stand-in."""

from __future__ import annotations

import json
import os
import re
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from monitor.config.file import load
from monitor.config.root import Config
from tests.support.command import command, run
from tests.support.dialogue import Dialogue
from tests.support.receivers.bots import DingTalkBot, WeComBot

QUESTIONS = {
    "en": ("Time zone of schedules", "Webhook address", "Kubernetes", "Directories with datasets", "Node whose agent",
           "Plan a cleanup every night", "Day of the weekly report", "Send a sample message now"),
    "zh": ("计划和消息使用的时区", "群机器人的 Webhook 地址", "Kubernetes 集群", "需要清理的数据集目录",
           "能访问这些目录的节点", "每天 03:00 执行清理演练", "每周发送报告的日期", "现在发送一条样例消息"),
}  # fmt: skip
SAYS = {
    "en": ("Mars/Base is not a time zone; write for example Asia/Shanghai", "This is not the address of a webhook.",
           "/etc cannot be a directory of datasets", "The sample message was accepted by wecom.",
           "Cleanup: finished-pods (pods, dry run), next run ", "Report: to wecom, next one "),
    "zh": ("Mars/Base 不是时区名称", "这不是 Webhook 地址。", "/etc 不能作为数据集目录", "wecom 已接收样例消息",
           "清理：finished-pods（Pod 清理，演练），下次执行 ", "报告：发送到 wecom，下次发送 "),
}  # fmt: skip
NIGHT = {"en": r"next run \d{4}-\d\d-\d\d 03:00 CST", "zh": r"下次执行 \d{4}-\d\d-\d\d 03:00 CST"}


@pytest.fixture
def bot() -> Iterator[WeComBot]:
    with WeComBot() as robot:
        yield robot


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("GPUWARDEN_", "LC_"))}
    return kept | {"HOME": str(tmp_path), "KUBECONFIG": "", "LANG": "C.UTF-8"}


def config_of(file: Path) -> Config:
    return load(str(file), {})


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_in_a_terminal(lang: str, tmp_path: Path, environ: dict[str, str], bot: WeComBot) -> None:
    file = tmp_path / "etc" / "gpuwarden.yml"
    timezone, receiver, kubernetes, roots, node, cleanup, day, sample = QUESTIONS[lang]
    with Dialogue.of("init", "--config", str(file), environ=environ) as dialogue:
        dialogue.answer("Language of questions and messages .* / 问答和消息使用的语言", lang)
        dialogue.answer(timezone, "Mars/Base")
        dialogue.answer(timezone, "Asia/Shanghai")
        dialogue.answer(receiver, "qyapi.weixin.qq.com")
        dialogue.answer(receiver, bot.url)
        dialogue.answer(kubernetes, "")
        dialogue.answer(roots, "/etc")
        dialogue.answer(roots, "/mnt/share, /mnt/data")
        dialogue.answer(node, "nas-01")
        dialogue.answer(cleanup, "")
        dialogue.answer(day, "fri")
        dialogue.answer(sample, "")
        assert dialogue.end() == 0, dialogue.text
    assert [words for words in SAYS[lang] if words not in dialogue.text] == []
    assert len(bot.taken) == 1
    assert ("磁盘" in json.dumps(bot.taken, ensure_ascii=False)) is (lang == "zh")

    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert [entry.name for entry in file.parent.iterdir()] == ["gpuwarden.yml"]
    checked = run("check-config", "--lang", lang, str(file), environ=environ)
    assert (checked.returncode, checked.stderr) == (0, "")
    assert len(re.findall(NIGHT[lang], checked.stdout)) == 4
    daemon = config_of(file).daemon
    assert (daemon.zone, daemon.alerts.language, daemon.kubernetes.enabled) == ("Asia/Shanghai", lang, "auto")
    assert daemon.report is not None
    assert daemon.report.cron == "0 9 * * fri"
    assert {policy.mode for policy in daemon.cleanup.policies} == {"dry-run"}


def test_a_signed_robot(tmp_path: Path, environ: dict[str, str]) -> None:
    file = tmp_path / "gpuwarden.yml"
    with DingTalkBot(secret="SEC1") as robot:
        options = ("--lang", "en", "--timezone", "UTC", "--kubernetes", "none", "--dataset-roots", "none")
        with Dialogue.of("init", "--config", str(file), *options, environ=environ) as dialogue:
            dialogue.answer("Webhook address", robot.url)
            dialogue.answer("Signing secret", "SEC1")
            dialogue.answer("Plan a cleanup every night", "no")
            dialogue.answer("Day of the weekly report", "none")
            dialogue.answer("Send a sample message now", "y")
            assert dialogue.end() == 0, dialogue.text
        assert len(robot.taken) == 1
    daemon = config_of(file).daemon
    assert (daemon.report, daemon.cleanup.policies, daemon.kubernetes.enabled) == (None, (), "no")


def test_a_receiver_that_refuses_is_code_1_and_the_file_stays(
    tmp_path: Path, environ: dict[str, str], bot: WeComBot
) -> None:
    file = tmp_path / "gpuwarden.yml"
    url = bot.url.replace("key=", "key=wrong")
    result = run("init", "--config", str(file), "--lang", "en", "--receiver", url, "--sample", "yes", environ=environ)
    assert result.returncode == 1
    assert "wecom did not accept the sample message: " in result.stdout
    assert f"gpuwarden alerts test --config {file}" in result.stdout
    assert "wrong" not in result.stdout + result.stderr
    assert config_of(file).daemon.alerts.receivers


def test_without_a_terminal(tmp_path: Path, environ: dict[str, str], bot: WeComBot) -> None:
    file = tmp_path / "gpuwarden.yml"
    missing = run("init", "--config", str(file), environ=environ)
    assert (missing.returncode, missing.stdout) == (2, "")
    assert "Missing: --receiver" in missing.stderr
    assert not file.exists()

    line = command("init", "--config", str(file), "--lang", "zh", "--timezone", "Asia/Shanghai", "--receiver", "-")
    result = subprocess.run(
        line, input=f"{bot.url}\n", env=environ, capture_output=True, text=True, timeout=300, check=False
    )
    assert (result.returncode, result.stderr) == (0, "")
    assert "清理：finished-pods（Pod 清理，演练），下次执行 " in result.stdout
    assert bot.taken == []  # nothing is sent without --sample yes
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_an_existing_file_is_kept(tmp_path: Path, environ: dict[str, str]) -> None:
    file = tmp_path / "gpuwarden.yml"
    file.write_text("daemon: {cycle: 20s}\n")
    kept = run("init", "--config", str(file), "--receiver", "none", environ=environ)
    assert kept.returncode == 2
    assert f"{file} exists and is kept" in kept.stderr
    assert file.read_text() == "daemon: {cycle: 20s}\n"
    assert run("init", "--config", str(file), "--receiver", "none", "--force", environ=environ).returncode == 0
    assert config_of(file).daemon.cycle == 15.0
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_an_interrupted_interview_writes_nothing(tmp_path: Path, environ: dict[str, str]) -> None:
    file = tmp_path / "gpuwarden.yml"
    with Dialogue.of("init", "--config", str(file), "--lang", "en", environ=environ) as dialogue:
        dialogue.answer("Time zone of schedules", "\x04\x04")
        assert dialogue.end() == 2
        assert "Stopped; nothing was written." in dialogue.text
    assert not file.exists()


@pytest.mark.parametrize(
    ("option", "value", "says"),
    [
        ("--timezone", "Beijing", "Beijing is not a time zone"),
        ("--receiver", "ftp://x", "This is not the address of a webhook"),
        ("--receiver", "https://qyapi.weixin.qq.com/cgi-bin/webhook/send", "ends with ?key="),
        ("--dataset-roots", "/home", "/home cannot be a directory of datasets"),
        ("--report-day", "soon", "Write mon, tue"),
        ("--cleanup", "perhaps", "Write yes or no."),
        ("--kubernetes", "/nonexistent/kubeconfig", "The kubeconfig cannot be used"),
        ("--lang", "fr", "Write en or zh."),
        ("--secret-file", "/nonexistent", "cannot read '/nonexistent'"),
    ],
)
def test_an_invalid_option_is_code_2(
    option: str, value: str, says: str, tmp_path: Path, environ: dict[str, str]
) -> None:
    file = tmp_path / "gpuwarden.yml"
    given: dict[str, Any] = {"--receiver": "https://oapi.dingtalk.com/robot/send?access_token=T"} | {option: value}
    words = [word for pair in given.items() for word in pair]
    result = run("init", "--config", str(file), *words, environ=environ)
    assert result.returncode == 2
    assert says in " ".join(result.stderr.split())
    assert not file.exists()
