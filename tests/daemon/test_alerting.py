"""Alerts of a real daemon: from a failing service to a WeCom message, across kill -9, and through Alertmanager."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support import free_port, wait_until
from tests.support.command import STOP_LIMIT, command, get, quiet_environment, running
from tests.support.fake_agents import FakeAgent, answers
from tests.support.receivers.bots import KEY, WeComBot
from tests.support.receivers.real_alertmanager import CALLBACK_TOKEN, real_alertmanager


class Portal:
    """A probed service that is down until `up()`."""

    def __init__(self) -> None:
        self.port = free_port()

    def up(self) -> FakeAgent:
        return FakeAgent(answers(b"welcome"), port=self.port)


def settings(state: Path, portal: Portal, **more: str) -> dict[str, str]:
    return quiet_environment(
        state,
        DAEMON__LISTEN=f"127.0.0.1:{free_port()}",
        DAEMON__SERVICES=f"[{{name: portal, url: 'http://127.0.0.1:{portal.port}', interval: 200ms}}]",
        DAEMON__RULES__SERVICE_DOWN__AFTER="0s",
        DAEMON__RULES__AGENT_SILENT__ENABLED="no",
        DAEMON__ALERTS__RULES__SERVICE_DOWN__RESOLVE_AFTER="1s",
        **more,
    )


@contextmanager
def daemon(environ: dict[str, str]) -> Iterator[subprocess.Popen[str]]:
    with running(command("daemon"), environ, stdout=subprocess.DEVNULL) as process:
        yield process


def ask(environ: dict[str, str], path: str) -> Any:
    """Response of the daemon; None while it does not respond."""
    try:
        status, _, body = get(f"http://{environ['GPUWARDEN_DAEMON__LISTEN']}{path}")
    except OSError:
        return None
    return json.loads(body) if status == 200 else None


def phases(environ: dict[str, str]) -> list[str]:
    return [alert["phase"] for alert in ask(environ, "/v1/alerts") or ()]


def unsent(environ: dict[str, str]) -> float:
    """Messages in the outbox that are not yet recorded as delivered."""
    _, _, metrics = get(f"http://{environ['GPUWARDEN_DAEMON__LISTEN']}/metrics")
    (count,) = re.findall(r'gpuwarden_outbox_messages\{receiver="wecom",state="waiting"\} (\S+)', metrics)
    return float(count)


def contents(bot: WeComBot) -> list[str]:
    return [message["markdown"]["content"] for message in bot.taken]


def wecom(bot: WeComBot, **more: str) -> str:
    return json.dumps([{"kind": "wecom", "url": bot.url, **more}])


def test_a_service_that_fails_is_told_within_seconds_once_and_then_that_it_is_over(tmp_path: Path) -> None:
    portal = Portal()
    with WeComBot() as bot:
        environ = settings(tmp_path, portal, DAEMON__ALERTS__RECEIVERS=wecom(bot, language="zh"))
        began = time.time()
        with daemon(environ) as process:
            wait_until(lambda: bot.taken, 15, "it is told")
            (told,) = contents(bot)
            (alert,) = ask(environ, "/v1/alerts")
            assert (alert["told"], alert["phase"], alert["labels"]) == (["wecom"], "firing", {"service": "portal"})
            assert began <= alert["fired_at"] <= time.time()
            assert "portal 拒绝连接" in told
            link = f"http://{environ['GPUWARDEN_DAEMON__LISTEN']}/alerts/{alert['fingerprint']}"
            assert link in told
            status, _, page = get(link)
            assert status == 200
            assert "portal has refused connections" in page
            with portal.up():
                wait_until(lambda: len(bot.taken) == 2, 15, "it is told that it is over")
                wait_until(lambda: phases(environ) == ["resolved"], 5, "it is over")
            assert "已恢复" in contents(bot)[1]
            process.send_signal(signal.SIGTERM)
            assert process.wait(STOP_LIMIT) == 0
            assert process.stderr is not None
            assert KEY not in process.stderr.read()
        assert len(bot.taken) == 2


def test_what_was_told_before_a_kill_is_not_told_again_and_what_was_over_meanwhile_is(tmp_path: Path) -> None:
    portal = Portal()
    with WeComBot() as bot:
        environ = settings(tmp_path, portal, DAEMON__ALERTS__RECEIVERS=wecom(bot))
        with daemon(environ) as process:
            wait_until(lambda: bot.taken, 15, "it is told")
            wait_until(lambda: unsent(environ) == 0, 5, "it is written down that it was told")
            process.kill()
            process.wait(60)
        with daemon(environ) as process:
            wait_until(lambda: ask(environ, "/v1/findings"), 15, "it is found again")
            time.sleep(1.0)  # long enough for a second message
            assert (len(bot.taken), phases(environ)) == (1, ["firing"])
            process.kill()
            process.wait(60)
        with portal.up(), daemon(environ):
            wait_until(lambda: len(bot.taken) == 2, 20, "it is told that it is over")
        assert "RESOLVED" in contents(bot)[1]


def test_a_message_that_was_not_delivered_before_a_kill_is_delivered_after(tmp_path: Path) -> None:
    portal = Portal()
    with WeComBot() as bot:
        bot.force = -1  # busy
        environ = settings(tmp_path, portal, DAEMON__ALERTS__RECEIVERS=wecom(bot))
        with daemon(environ) as process:
            wait_until(lambda: bot.asked, 15, "it is tried")
            process.kill()
            process.wait(60)
        bot.force = None
        with daemon(environ):
            wait_until(lambda: bot.taken, 20, "it is told")
            wait_until(lambda: ask(environ, "/v1/deliveries")[0]["state"] == "sent", 5, "it is noted")
            assert len(ask(environ, "/v1/deliveries")) == 1
        assert len(bot.taken) == 1


# Through a real Alertmanager


def test_alertmanager_calls_back_and_the_message_goes_out_as_wecom(tmp_path: Path) -> None:
    portal = Portal()
    with WeComBot() as bot:
        environ = settings(tmp_path / "state", portal)
        hook = f"http://{environ['GPUWARDEN_DAEMON__LISTEN']}/v1/alertmanager"
        with real_alertmanager(tmp_path, hook) as manager:
            receivers = [{"kind": "wecom", "url": bot.url}, {"kind": "alertmanager", "url": manager.url}]
            environ["GPUWARDEN_DAEMON__ALERTS__RECEIVERS"] = json.dumps(receivers)
            environ["GPUWARDEN_DAEMON__ALERTS__ROUTES"] = "[{receivers: [alertmanager]}]"
            environ["GPUWARDEN_DAEMON__ALERTS__CLUSTER"] = "lab"
            environ["GPUWARDEN_DAEMON__ALERTS__CALLBACK__TOKEN"] = CALLBACK_TOKEN
            with daemon(environ):
                wait_until(lambda: bot.taken, 20, "it is told")
                (alert,) = manager.alerts()
                assert {"alertname": "ServiceDown", "service": "portal", "cluster": "lab"}.items() <= alert[
                    "labels"
                ].items()
                (told,) = contents(bot)
                assert "portal has refused connections" in told
                _call_again(hook, alert)
                with portal.up():
                    wait_until(lambda: len(bot.taken) >= 2, 20, "it is told that it is over")
                    wait_until(lambda: manager.alerts() == [], 10, "it is over there too")
                assert ["RESOLVED" in content for content in contents(bot)] == [False, True]
                receivers_told = {each["receiver"] for each in ask(environ, "/v1/deliveries")}
                assert receivers_told == {"wecom", "alertmanager"}


def _call_again(hook: str, alert: dict[str, Any]) -> None:
    """Send the webhook of a second Alertmanager replica: the same alerts must not cause another message."""
    called = {key: alert[key] for key in ("labels", "annotations", "startsAt", "fingerprint")} | {"status": "firing"}
    payload = {"version": "4", "groupKey": '{}:{alertname="ServiceDown"}', "alerts": [called]}
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {CALLBACK_TOKEN}"}
    request = urllib.request.Request(hook, json.dumps(payload).encode(), headers)
    with urllib.request.urlopen(request, timeout=60) as answer:
        assert json.load(answer) == {"messages": 0}


def test_silences_of_an_alertmanager_are_respected(tmp_path: Path) -> None:
    portal = Portal()
    with WeComBot() as bot, real_alertmanager(tmp_path, "http://127.0.0.1:1/") as manager:
        now = time.time()
        matcher = {"name": "service", "value": "port.*", "isRegex": True, "isEqual": True}
        times = [time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now + more)) for more in (-60, 3600)]
        made = manager.post(
            "/api/v2/silences",
            {"matchers": [matcher], "startsAt": times[0], "endsAt": times[1], "createdBy": "li", "comment": "moving"},
        )
        environ = settings(
            tmp_path / "state",
            portal,
            DAEMON__ALERTS__RECEIVERS=wecom(bot),
            DAEMON__ALERTS__ALERTMANAGER__URL=manager.url,
        )
        with daemon(environ):
            wait_until(lambda: phases(environ) == ["firing"], 15, "it fires")
            (alert,) = ask(environ, "/v1/alerts")
            assert alert["silenced_by"] == made["silenceID"]
            assert [each["author"] for each in ask(environ, "/v1/silences")] == ["li"]
            time.sleep(1.5)
        assert bot.asked == []
        request = urllib.request.Request(f"{manager.url}/api/v2/silence/{made['silenceID']}", method="DELETE")
        urllib.request.urlopen(request, timeout=60).close()
        with daemon(environ):
            wait_until(lambda: bot.taken, 15, "it is told")


def test_without_receivers_it_is_said_how_to_have_one_and_alerts_are_kept(tmp_path: Path) -> None:
    environ = settings(tmp_path, Portal())
    with daemon(environ) as process:
        wait_until(lambda: phases(environ) == ["firing"], 15, "it fires")
        process.send_signal(signal.SIGTERM)
        process.wait(STOP_LIMIT)
        assert process.stderr is not None
        lines = [line for line in process.stderr.read().splitlines() if "alerts are not sent" in line]
    assert len(lines) == 1
    assert "WeCom" in lines[0]


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_page_of_alerts(tmp_path: Path, lang: str) -> None:
    environ = settings(tmp_path, Portal())
    with daemon(environ):
        wait_until(lambda: phases(environ) == ["firing"], 15, "it fires")
        page = get(f"http://{environ['GPUWARDEN_DAEMON__LISTEN']}/alerts?lang={lang}")[2]
        assert {"en": "portal has refused connections", "zh": "portal 拒绝连接"}[lang] in page
        assert get(f"http://{environ['GPUWARDEN_DAEMON__LISTEN']}/alerts/nope")[0] == 404
