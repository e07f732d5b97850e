"""Alert settings as users write them; rejected configurations and their messages are in tests/fixtures/config."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from monitor.alert.lifecycle import AlertTiming
from monitor.alert.matchers import parse_matcher
from monitor.alert.owner_preferences import OwnerCategory, OwnerPreferences
from monitor.alert.receivers.base import MailSettings, OwnerContact, RateLimit, ReceiverSettings
from monitor.alert.routes import Route
from monitor.alert.windows import MaintenanceWindow, QuietHours
from monitor.config.alerts import AlertsConfig
from monitor.config.file import ConfigError, load
from monitor.config.owners import MAX_WEBHOOKS
from monitor.config.root import Config
from monitor.job_results.settings import LABEL

SECRET = "693a91f6-s3cret"
WECOM = f"https://qyapi.weixin.qq.com/cgi-bin/webhook/send?key={SECRET}"
PAGE = "http://127.0.0.1:9836"


def alerts(**given: Any) -> AlertsConfig:
    return Config.model_validate({"daemon": {"alerts": given}}).daemon.alerts


def only(*receivers: object, **more: Any) -> ReceiverSettings:
    (settings,) = alerts(receivers=list(receivers), **more).receiver_settings(PAGE)
    return settings


@pytest.mark.parametrize(
    ("text", "variables"),
    [
        (f"daemon: {{alerts: {{receivers: [{WECOM}]}}}}", {}),
        (f"daemon:\n  alerts:\n    receivers:\n      - {WECOM}\n", {}),
        (f"daemon: {{alerts: {{receivers: {WECOM}}}}}", {}),
        ("", {"GPUWARDEN_DAEMON__ALERTS__RECEIVERS": f"[{WECOM}]"}),
        ("", {"GPUWARDEN_DAEMON__ALERTS__RECEIVERS": WECOM}),
    ],
    ids=["brackets", "lines", "no list", "variable", "variable, no list"],
)
def test_one_line_is_enough(tmp_path: Path, text: str, variables: dict[str, str]) -> None:
    file = tmp_path / "gpuwarden.yml"
    file.write_text(text)
    given = load(str(file), variables).daemon.alerts
    (settings,) = given.receiver_settings(PAGE)
    assert (settings.name, settings.kind, settings.url, settings.page) == ("wecom", "wecom", WECOM, PAGE)
    assert given.effective_routes() == (Route(receivers=("wecom",)),)
    assert SECRET not in f"{given!r} {given.model_dump_json()} {settings!r}"


@pytest.mark.parametrize(
    ("receiver", "name", "kind"),
    [
        (WECOM, "wecom", "wecom"),
        ("https://oapi.dingtalk.com/robot/send?access_token=x", "dingtalk", "dingtalk"),
        ("https://open.feishu.cn/open-apis/bot/v2/hook/x", "feishu", "feishu"),
        ("https://open.larksuite.com/open-apis/bot/v2/hook/x", "feishu", "feishu"),
        ("https://hooks.slack.com/services/x", "slack", "slack"),
        ("https://hook.lab/x", "webhook", "webhook"),
        ("console", "console", "console"),
        ({"url": "http://am.lab:9093", "kind": "alertmanager"}, "alertmanager", "alertmanager"),
        ({"url": "http://wecom-proxy.lab/?key=x", "kind": "wecom", "name": "ops"}, "ops", "wecom"),
        ({"url": "tgram://token/chat", "kind": "apprise"}, "apprise", "apprise"),
    ],
)
def test_what_a_receiver_is_follows_from_its_address(receiver: object, name: str, kind: str) -> None:
    settings = only(receiver)
    assert (settings.name, settings.kind) == (name, kind)


def test_receivers_of_one_kind_are_numbered() -> None:
    given = alerts(receivers=[WECOM, "console", WECOM, {"url": WECOM, "name": "wecom-3"}, WECOM])
    names = [settings.name for settings in given.receiver_settings(PAGE)]
    assert names == ["wecom", "console", "wecom-2", "wecom-3", "wecom-4"]


def test_secrets_in_files(tmp_path: Path) -> None:
    (tmp_path / "url").write_text(f"{WECOM}\n")
    (tmp_path / "secret").write_text("SEC s3cret \n")
    assert only({"url_file": f"{tmp_path}/url"}).url == WECOM
    signed = only({"url": "https://oapi.dingtalk.com/robot/send?access_token=x", "secret_file": f"{tmp_path}/secret"})
    assert signed.secret == "SEC s3cret "
    given = alerts(receivers=[{"url_file": f"{tmp_path}/url"}])
    (tmp_path / "url").unlink()
    with pytest.raises(ValueError, match="cannot read"):
        given.receiver_settings(PAGE)


def test_everything_that_is_given_reaches_the_receiver(tmp_path: Path) -> None:
    (tmp_path / "template").write_text("{{ title }}\n")
    settings = only(
        {
            "url": WECOM, "mention": ["all"], "timeout": "3s", "proxy": "http://proxy.lab:3128", "verify_tls": False,
            "pace": {"count": 5, "window": "30s", "gap": "1s"}, "template_file": f"{tmp_path}/template",
        },
        language="zh", cluster="lab", page="https://gpuwarden.lab/", timezone="Asia/Shanghai",
        owners={"zhang": {"wecom": "ZhangSan", "mobile": "13800000000"}},
    )  # fmt: skip
    assert settings == ReceiverSettings(
        name="wecom",
        kind="wecom",
        url=WECOM,
        language="zh",
        page="https://gpuwarden.lab",
        cluster="lab",
        timezone="Asia/Shanghai",
        template="{{ title }}",
        owners={"zhang": OwnerContact(wecom="ZhangSan", mobile="13800000000")},
        mention=("all",),
        timeout=3.0,
        proxy="http://proxy.lab:3128",
        verify_tls=False,
        pace=RateLimit(5, 30.0, 1.0),
    )
    assert only({"url": WECOM, "language": "en"}, language="zh").language == "en"


@pytest.mark.parametrize(
    ("url", "more", "expect"),
    [
        ("smtp://mail.lab", {}, ("mail.lab", 587, None, "starttls")),
        ("smtps://me@mail.lab", {}, ("mail.lab", 465, "me", "tls")),
        ("smtp://mail.lab:2525", {"tls": "none", "user": "ops"}, ("mail.lab", 2525, "ops", "none")),
    ],
)
def test_mail(url: str, more: dict[str, str], expect: tuple[object, ...]) -> None:
    mail = only({"url": url, "sender": "gpuwarden@lab", "to": ["ops@lab"], "password": "s3cret", **more}).mail
    assert isinstance(mail, MailSettings)
    assert (mail.host, mail.port, mail.user, mail.tls) == expect
    assert (mail.sender, mail.to, mail.password) == ("gpuwarden@lab", ("ops@lab",), "s3cret")


@pytest.mark.parametrize(
    ("match", "expect"),
    [
        ({"severity": "critical"}, ["severity=critical"]),
        ({"user": '~"zhang|li"', "gpu": 3}, ["user=~zhang|li", "gpu=3"]),
        ({"queue": "!test", "node": "!~gpu0.*"}, ["queue!=test", "node!~gpu0.*"]),
        (["node=~gpu[0-9]+", "severity!=info"], ["node=~gpu[0-9]+", "severity!=info"]),
        ("alertname=DiskFull", ["alertname=DiskFull"]),
        ({}, []),
    ],
)
def test_matchers(match: object, expect: list[str]) -> None:
    given = alerts(receivers=["console"], routes=[{"match": match, "receivers": ["console"]}])
    assert given.effective_routes()[0].matchers == tuple(parse_matcher(text) for text in expect)


def test_a_whole_policy(tmp_path: Path) -> None:
    text = f"""
        daemon:
          token: abc
          alerts:
            timezone: Asia/Shanghai
            receivers: [{WECOM}, console]
            routes:
              - {{match: {{severity: critical}}, receivers: wecom, repeat: 1h, group_wait: 0s, continue: yes}}
              - {{receivers: [console], group_interval: 1m, quiet_hours: 22:00-08:00}}
            rules:
              image_pull: {{for: 10s, resolve_after: 1m}}
              monitor_blind: {{for: 5m}}
            maintenance:
              - {{cron: 0 3 * * 6, duration: 2h, timezone: UTC, match: {{node: gpu1}}}}
              - {{cron: 0 3 * * 0, duration: 30m}}
            group_by: [alertname, node]
            heartbeat: {{url: 'https://hc.lab/ping/{SECRET}', interval: 30s}}
            digest: {{cron: '0 9 * * 1-5', receivers: [wecom]}}
            alertmanager: {{url: 'http://am.lab:9093', token: {SECRET}}}
            callback: {{receivers: [wecom], token: {SECRET}}}
    """
    file = tmp_path / "gpuwarden.yml"
    file.write_text(text)
    daemon = load(str(file), {}).daemon
    given = daemon.alerts
    assert daemon.read_token() == "abc"
    critical = (parse_matcher("severity=critical"),)
    assert given.effective_routes() == (
        Route(receivers=("wecom",), matchers=critical, repeat=3600.0, group_wait=0.0, continue_matching=True),
        Route(receivers=("console",), group_interval=60.0, quiet=QuietHours("22:00", "08:00", "Asia/Shanghai")),
        Route(receivers=("wecom", "console")),
    )
    timings = given.rules.timings()
    assert timings.of("image-pull") == AlertTiming(wait=10.0, keep=60.0)
    assert timings.of("monitor-blind") == AlertTiming(wait=300.0)
    assert timings.of("disk-full") == timings.of("no-such-rule") == AlertTiming()
    assert given.windows() == (
        MaintenanceWindow("0 3 * * 6", 7200.0, "UTC", (parse_matcher("node=gpu1"),)),
        MaintenanceWindow("0 3 * * 0", 1800.0, "Asia/Shanghai"),
    )
    assert given.group_by == ("alertname", "node")
    assert given.heartbeat is not None
    assert (given.heartbeat.address, given.heartbeat.interval) == (f"https://hc.lab/ping/{SECRET}", 30.0)
    assert given.callback_receivers() == ("wecom",)
    assert SECRET not in f"{daemon!r} {daemon.model_dump_json()}"


def test_who_is_told_what_an_alertmanager_tells() -> None:
    given = alerts(receivers=[WECOM, {"kind": "alertmanager", "url": "http://am.lab:9093"}, "console"])
    assert given.callback_receivers() == ("wecom", "console")


def test_no_receivers_is_no_mistake() -> None:
    assert alerts().receiver_settings(PAGE) == ()
    assert alerts().effective_routes() == (Route(receivers=()),)


@pytest.mark.parametrize(
    "value",
    [f"{{{WECOM}: 1}}", f"[[{WECOM}]]", f"[{{url: [{WECOM}]}}]", f"[{{url: {{a: '{WECOM}'}}}}]", f"'{WECOM} x'"],
)
def test_no_message_repeats_an_address(value: str) -> None:
    with pytest.raises(ConfigError) as refused:
        load(None, {"GPUWARDEN_DAEMON__ALERTS__RECEIVERS": value})
    assert SECRET not in str(refused.value)


def test_owners_of_a_file_and_of_the_configuration(tmp_path: Path) -> None:
    file = tmp_path / "owners.json"
    file.write_text('{"zhang": {"wecom": "Z", "mail": "z@lab"}, "li": {"wecom": "L", "opt_out": "idle"}}')
    given = alerts(
        receivers=[WECOM], owners_file=str(file), owners={"zhang": {"wecom": "ZhangSan", "digest": "18:00"}},
        owner_defaults={"quiet_hours": "22:00-08:00", "opt_out": ["results"]}, timezone="Asia/Shanghai",
    )  # fmt: skip
    (settings,) = given.receiver_settings(PAGE)
    assert settings.owners == {"zhang": OwnerContact(wecom="ZhangSan"), "li": OwnerContact(wecom="L")}
    book = given.owner_book()
    quiet = QuietHours("22:00", "08:00", "Asia/Shanghai")
    results, idle = frozenset({OwnerCategory.RESULTS}), frozenset({OwnerCategory.IDLE})
    assert book.of("zhang") == OwnerPreferences(quiet, "18:00", results, "Asia/Shanghai")
    assert book.of("li") == OwnerPreferences(quiet, None, idle, "Asia/Shanghai")
    assert book.of("wang") == OwnerPreferences(quiet, None, results, "Asia/Shanghai")
    file.write_text("wang: {feishu: ou_1}\n")  # as a reload reads it
    assert alerts(receivers=[WECOM], owners_file=str(file)).receiver_settings(PAGE)[0].owners.keys() == {"wang"}


def test_a_webhook_of_an_owner_is_a_receiver_of_its_own() -> None:
    given = alerts(receivers=["console"], owners={"zhang": {"webhook": WECOM}})
    assert [each.name for each in given.receiver_settings(PAGE)] == ["console"]
    (personal,) = given.personal_settings(PAGE)
    assert (personal.name, personal.kind, personal.url) == ("owner/zhang", "wecom", WECOM)
    assert given.owner_book().personal == {"zhang"}
    assert given.effective_routes() == (Route(receivers=("console",)),)
    assert SECRET not in f"{given!r} {given.model_dump_json()}"


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("zhang: {wecom: Z}\nli:\n  wechat: L\n", ":3: li.wechat: unknown key; there are digest, feishu, "),
        ("zhang: Z\n", ":1: zhang: write 'user: {wecom: ...}' lines"),
        ("- zhang\n", ":1: "),
        ("zhang: {wecom: Z\n", ":2: "),
        ("zhang:\n  digest: 25:00\n", ":2: zhang.digest: '25:00' is not a time of day; write for example 22:00"),
        ("zhang:\n  opt_out: [everything]\n", ":2: zhang.opt_out: 'everything': unknown category; there are "),
    ],
)
def test_a_mistake_in_the_file_of_owners_is_named_with_its_line(tmp_path: Path, content: str, problem: str) -> None:
    file, owners = tmp_path / "gpuwarden.yml", tmp_path / "owners.yml"
    owners.write_text(content)
    file.write_text(f"daemon:\n  alerts:\n    owners_file: {owners}\n")
    with pytest.raises(ConfigError) as refused:
        load(str(file), {})
    assert f"{owners}{problem}" in str(refused.value)
    assert str(refused.value).startswith(f"{file}:3: daemon.alerts.owners_file: ")


def test_a_webhook_with_a_mistake_is_not_quoted(tmp_path: Path) -> None:
    owners = tmp_path / "owners.yml"
    owners.write_text(f"zhang: {{webhook: 'ftp://{SECRET}'}}\n")
    with pytest.raises(ValidationError) as refused:
        alerts(owners_file=str(owners))
    assert SECRET not in str(refused.value)


def test_more_webhooks_of_owners_than_threads_are_rejected() -> None:
    owners = {f"user-{number}": {"webhook": WECOM} for number in range(MAX_WEBHOOKS + 1)}
    with pytest.raises(ValidationError, match="101 owners have a webhook; at most 100 can"):
        alerts(receivers=["console"], owners=owners)


def test_job_results_go_to_the_receivers_named_or_all() -> None:
    assert alerts(receivers=["console"]).job_results is None
    given = alerts(receivers=["console", WECOM], job_results={"users": "zhang"})
    assert given.job_results is not None
    found = given.job_results.settings(given.direct_receivers())
    assert (found.receivers, found.users, found.label) == (("console", "wecom"), ("zhang",), LABEL)
    with pytest.raises(ValidationError, match="'mail': unknown receiver; there are console"):
        alerts(receivers=["console"], job_results={"receivers": ["mail"]})
