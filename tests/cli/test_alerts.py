"""`gpuwarden alerts` against a real daemon, and the subcommands that work without one."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.leftovers import english_in
from tests.support import free_port, wait_until
from tests.support.command import command, get, quiet_environment, run, running
from tests.support.receivers.bots import KEY, WeComBot

TOKEN = "s3cret-t0ken"


@pytest.fixture(scope="module")
def bot() -> Iterator[WeComBot]:
    with WeComBot() as server:
        yield server


@pytest.fixture(scope="module")
def environ(tmp_path_factory: pytest.TempPathFactory, bot: WeComBot) -> dict[str, str]:
    return quiet_environment(
        tmp_path_factory.mktemp("state"),
        DAEMON__LISTEN=f"127.0.0.1:{free_port()}",
        DAEMON__TOKEN=TOKEN,
        DAEMON__SERVICES=f"[{{name: portal, url: 'http://127.0.0.1:{free_port()}', interval: 200ms}}]",
        DAEMON__RULES__SERVICE_DOWN__AFTER="0s",
        DAEMON__RULES__AGENT_SILENT__ENABLED="no",
        DAEMON__ALERTS__RECEIVERS=json.dumps([{"kind": "wecom", "url": bot.url}]),
    ) | {"LC_ALL": "C.UTF-8"}


@pytest.fixture(scope="module")
def daemon(environ: dict[str, str], bot: WeComBot) -> Iterator[None]:
    with running(command("daemon"), environ, stdout=subprocess.DEVNULL):
        wait_until(lambda: bot.taken, 20, "something is told")
        yield


def alerts(environ: dict[str, str], *words: str) -> tuple[int, Any]:
    """Exit code and decoded JSON output."""
    result = run("alerts", *words, "--json", environ=environ)
    assert result.stderr == ""
    return result.returncode, json.loads(result.stdout)


@pytest.mark.usefixtures("daemon")
def test_what_fires_is_listed_silenced_and_unsilenced(environ: dict[str, str]) -> None:
    code, listed = alerts(environ, "list")
    assert (code, [each["labels"] for each in listed["alerts"]]) == (1, [{"service": "portal"}])
    people = run("alerts", "list", "--lang", "zh", environ=environ)
    assert people.returncode == 1
    assert "拒绝连接" in people.stdout
    code, made = alerts(environ, "silence", "service=portal", "alertname=ServiceDown", "--for", "2h", "--comment", "up")
    assert (code, made["comment"], made["ends_at"] - made["starts_at"]) == (0, "up", 7200.0)
    assert made["author"]
    code, listed = alerts(environ, "list")
    assert (code, [each["silenced_by"] for each in listed["alerts"]]) == (0, [made["id"]])
    assert f"silenced by {made['id']}" in " ".join(run("alerts", "list", environ=environ).stdout.split())
    assert alerts(environ, "unsilence", made["id"]) == (0, {"ended": made["id"]})
    again = run("alerts", "unsilence", made["id"], environ=environ)
    assert (again.returncode, again.stdout) == (1, "")
    assert again.stderr == "gpuwarden: the daemon says: there is no such active silence\n"
    assert alerts(environ, "list")[0] == 1


@pytest.mark.usefixtures("daemon")
def test_answers_are_in_chinese(environ: dict[str, str]) -> None:
    words = ("silence", "service=portal", "alertname=OfATest", "--for", "2h", "--lang", "zh")
    made = run("alerts", *words, environ=environ)
    assert (made.returncode, made.stderr) == (0, "")
    assert made.stdout.startswith("已静默，到 ")
    silence = made.stdout.split()[-1]
    ended = run("alerts", "unsilence", silence, "--lang", "zh", environ=environ)
    assert (ended.returncode, ended.stdout) == (0, f"静默 {silence} 已结束\n")
    assert english_in(made.stdout + ended.stdout, [silence]) == []


@pytest.mark.usefixtures("daemon")
def test_an_incident_is_a_document(environ: dict[str, str]) -> None:
    fingerprint = alerts(environ, "list")[1]["alerts"][0]["fingerprint"]
    written = run("incident", fingerprint, "--lang", "zh", environ=environ)
    assert (written.returncode, written.stderr) == (0, "")
    assert written.stdout.startswith("# ")
    assert "## 时间线" in written.stdout
    assert "- **对象**：服务 portal" in written.stdout
    assert run("incident", fingerprint, "--format", "html", environ=environ).stdout.startswith("<!doctype html>")
    shown = json.loads(run("incident", fingerprint, "--json", environ=environ).stdout)
    assert [each["entry"]["what"] for each in shown["timeline"]].count("fired") == 1
    unknown = run("incident", "other", environ=environ)
    assert (unknown.returncode, unknown.stdout) == (1, "")
    assert unknown.stderr == "gpuwarden: the daemon says: there is no such alert on record\n"


@pytest.mark.usefixtures("daemon")
def test_what_happened_and_what_was_sent(environ: dict[str, str]) -> None:
    code, past = alerts(environ, "history", "--since", "1h")
    assert (code, [each["what"] for each in past["events"]]) == (0, ["fired"])
    code, sent = alerts(environ, "history", "--messages")
    assert (code, sent["deliveries"][-1]["state"]) == (0, "sent")
    assert "portal has refused connections" in run("alerts", "history", environ=environ).stdout.replace("\n", " ")


@pytest.mark.usefixtures("daemon")
def test_a_test_message_shows_the_answer_of_the_receiver(environ: dict[str, str], bot: WeComBot) -> None:
    before = len(bot.taken)
    code, tried = alerts(environ, "test", "--rule", "gpu-zombie")
    assert (code, [each["ok"] for each in tried["results"]]) == (0, [True])
    assert "test message" in bot.taken[before]["markdown"]["content"]
    assert "but still holds GPU" in bot.taken[before]["markdown"]["content"]
    bot.force = 93000
    try:
        result = run("alerts", "test", "--receiver", "wecom", environ=environ)
    finally:
        bot.force = None
    assert result.returncode == 1
    assert "93000" in result.stdout
    assert KEY not in result.stdout + result.stderr


@pytest.mark.usefixtures("daemon")
def test_without_the_token_nothing_is_changed(environ: dict[str, str], tmp_path: Path) -> None:
    unknowing = {name: value for name, value in environ.items() if not name.endswith("DAEMON__TOKEN")}
    unknowing["GPUWARDEN_DAEMON__STATE"] = str(tmp_path)
    result = run("alerts", "silence", "service=portal", "--for", "1h", environ=unknowing)
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr.startswith(f"gpuwarden: cannot read the token of the daemon in {tmp_path}/cli.token ")
    assert alerts(unknowing, "list")[0] == 1
    assert get(f"http://{environ['GPUWARDEN_DAEMON__LISTEN']}/v1/silences")[2] == "[]"


USAGE: list[tuple[list[str], str]] = [
    (["silence"], "Missing argument"),
    (["silence", "service=portal"], "Missing option '--for'"),
    (["silence", "service", "--for", "1h"], "is not a matcher"),
    (["silence", "servic=portal", "--for", "1h"], "did you mean 'service'?"),
    (["silence", "service=portal", "--for", "long"], "is not a duration"),
    (["history", "--since", "long"], "is not a duration"),
    (["nonsense"], "No such command"),
]


@pytest.mark.parametrize(("words", "expect"), USAGE, ids=[" ".join(row[0]) for row in USAGE])
def test_wrong_usage_is_code_2(environ: dict[str, str], words: list[str], expect: str) -> None:
    result = run("alerts", *words, environ=environ)
    assert (result.returncode, result.stdout) == (2, "")
    assert expect in " ".join(result.stderr.split())


# Without a daemon


@pytest.fixture
def alone(environ: dict[str, str], tmp_path: Path) -> dict[str, str]:
    return environ | {"GPUWARDEN_DAEMON__LISTEN": f"127.0.0.1:{free_port()}", "GPUWARDEN_DAEMON__STATE": str(tmp_path)}


@pytest.mark.parametrize("words", [["list"], ["history"], ["unsilence", "x"]], ids=" ".join)
def test_without_a_daemon_one_sentence_says_so(alone: dict[str, str], words: list[str]) -> None:
    result = run("alerts", *words, environ=alone)
    assert (result.returncode, result.stdout) == (3, "")
    assert result.stderr.startswith(f"gpuwarden: no daemon answers on {alone['GPUWARDEN_DAEMON__LISTEN']}; ")
    assert result.stderr.count("\n") == 1


def test_a_test_message_needs_no_daemon(alone: dict[str, str], bot: WeComBot) -> None:
    before = len(bot.taken)
    code, tried = alerts(alone, "test")
    assert (code, [(each["receiver"], each["ok"]) for each in tried["results"]]) == (0, [("wecom", True)])
    assert len(bot.taken) == before + 1
    nobody = run("alerts", "test", "--receiver", "nobody", environ=alone)
    assert nobody.returncode == 2
    assert "there is no receiver 'nobody'; there are wecom" in nobody.stderr
    none = {name: value for name, value in alone.items() if not name.endswith("RECEIVERS")}
    assert run("alerts", "test", environ=none).returncode == 2
