"""Answers to the questions of `gpuwarden init`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from monitor.cli import answers as of
from monitor.i18n import LANGUAGES

KEY = "s3cret"
ROBOT = f"https://qyapi.weixin.qq.com/cgi-bin/webhook/send?key={KEY}"

UNDERSTOOD: list[tuple[Callable[[str], Any], str, object]] = [
    (of.parse_language, "中文", "zh"),
    (of.parse_language, "English", "en"),
    (of.parse_timezone, "Europe/Berlin", "Europe/Berlin"),
    (of.parse_receiver, "none", None),
    (of.parse_receiver, "无", None),
    (of.parse_roots, "/mnt/a, /mnt/b /mnt/a", ("/mnt/a", "/mnt/b")),
    (of.parse_roots, "/mnt/a，/mnt/b/", ("/mnt/a", "/mnt/b")),  # as Chinese input methods write it
    (of.parse_roots, "none", ()),
    (of.parse_secret, "none", None),
    (of.parse_yes, "是", True),
    (of.parse_yes, "N", False),
    (of.parse_day, "Monday", "mon"),
    (of.parse_day, "周一", "mon"),
    (of.parse_day, "星期天", "sun"),
    (of.parse_day, "无", None),
    (of.parse_kubernetes, "Auto", "auto"),
    (of.parse_kubernetes, "none", "no"),
]
REFUSED: list[tuple[Callable[[str], Any], str]] = [
    (of.parse_language, "fr"),
    (of.parse_timezone, "Beijing"),
    (of.parse_receiver, "qyapi.weixin.qq.com"),
    (of.parse_receiver, "https://qyapi.weixin.qq.com/cgi-bin/webhook/send"),
    (of.parse_receiver, "smtp://mail.lab"),
    (of.parse_receiver, "https://["),
    (of.parse_roots, "mnt/a"),
    (of.parse_roots, "/mnt/a /etc/x"),
    (of.parse_roots, " ".join(f"/mnt/{number}" for number in range(of.MAX_ROOTS + 1))),
    (of.parse_node, "a b"),
    (of.parse_node, ""),
    (of.parse_yes, "perhaps"),
    (of.parse_day, "someday"),
    (of.parse_kubernetes, "/nonexistent/kubeconfig"),
]


@pytest.mark.parametrize(("parse", "text", "expect"), UNDERSTOOD)
def test_understood(parse: Callable[[str], Any], text: str, expect: object) -> None:
    assert parse(text) == expect


@pytest.mark.parametrize(("parse", "text"), REFUSED)
def test_refused_with_what_to_write_instead(parse: Callable[[str], Any], text: str) -> None:
    with pytest.raises(of.AnswerError) as refused:
        parse(text)
    for lang in LANGUAGES:
        assert refused.value.text(lang).isprintable()


@pytest.mark.parametrize(
    ("url", "kind"),
    [
        (ROBOT, "wecom"),
        ("http://proxy.lab:8080/cgi-bin/webhook/send?key=K", "wecom"),
        ("https://oapi.dingtalk.com/robot/send?access_token=T", "dingtalk"),
        ("https://dingtalk.corp.lab/robot/send?access_token=T", "dingtalk"),
        ("https://open.feishu.cn/open-apis/bot/v2/hook/x", "feishu"),
        ("https://feishu.corp.lab/open-apis/bot/v2/hook/x", "feishu"),
        ("https://hooks.corp.lab/alerts", "webhook"),
    ],
)
def test_the_address_says_what_kind_of_receiver_it_is(url: str, kind: str) -> None:
    receiver = of.parse_receiver(url)
    assert receiver is not None
    assert (receiver.kind, receiver.url) == (kind, url)


def test_no_message_contains_the_address() -> None:
    with pytest.raises(of.AnswerError) as refused:
        of.parse_receiver(f"ftp://qyapi.weixin.qq.com/?key={KEY}")
    assert [lang for lang in LANGUAGES if KEY in refused.value.text(lang)] == []


def test_the_default_cluster_is_that_of_the_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert of.default_kubernetes({}) == "auto"
    kubeconfig = tmp_path / ".kube" / "config"
    kubeconfig.parent.mkdir()
    kubeconfig.write_text("not a kubeconfig")
    assert of.default_kubernetes({}) == "auto"
    kubeconfig.write_text(
        "{apiVersion: v1, kind: Config, current-context: a, contexts: [{name: a, context: {cluster: c, user: u}}],"
        " clusters: [{name: c, cluster: {server: 'https://127.0.0.1:6443'}}], users: [{name: u, user: {token: t}}]}"
    )
    assert of.default_kubernetes({}) == str(kubeconfig)
    assert of.default_kubernetes({"KUBECONFIG": "/nonexistent"}) == "auto"
