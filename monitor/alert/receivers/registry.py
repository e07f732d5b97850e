"""Kinds of receivers. A new kind is its file, one line in KINDS, and its test.

What the configuration needs to know of a kind is in the table, not in the class: every command and the agent load the
configuration, and importing all classes with formats, catalogs and templates takes 5 MB.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Literal

from monitor.alert.receivers.base import Receiver, ReceiverSettings


@dataclass(frozen=True)
class ReceiverKind:
    """A kind of receiver: its class, in the module with the name of the kind, and what may be configured.

    A URL with one of `hosts` implies the kind. `url` is the sort of URL it needs. `options` are settings that not every
    kind has.
    """

    class_name: str
    hosts: tuple[str, ...] = ()
    url: Literal["http", "smtp", "any", "none"] = "http"
    options: frozenset[str] = frozenset()


_TEXT = frozenset({"template"})
_CHAT = _TEXT | {"mention"}
_MAIL = _TEXT | {"sender", "to", "to_owners", "user", "password", "tls"}

KINDS: Mapping[str, ReceiverKind] = {
    "wecom": ReceiverKind("WeCom", ("qyapi.weixin.qq.com",), options=_CHAT),
    "dingtalk": ReceiverKind("DingTalk", ("oapi.dingtalk.com",), options=_CHAT | {"secret"}),
    "feishu": ReceiverKind("Feishu", ("open.feishu.cn", "open.larksuite.com"), options=_CHAT | {"secret"}),
    "slack": ReceiverKind("Slack", ("hooks.slack.com",), options=_CHAT),
    "webhook": ReceiverKind("Webhook", options=frozenset({"secret", "token"})),
    "alertmanager": ReceiverKind("Alertmanager", options=frozenset({"token"})),
    "mail": ReceiverKind("Mail", url="smtp", options=_MAIL),
    "console": ReceiverKind("Console", url="none", options=_TEXT),
    "apprise": ReceiverKind("Apprise", url="any", options=_TEXT),
}
HOSTS: Mapping[str, str] = {host: name for name, kind in KINDS.items() for host in kind.hosts}


def kinds_with(option: str) -> tuple[str, ...]:
    """Kinds of receivers that have an option; empty for options of every kind."""
    return tuple(name for name, kind in KINDS.items() if option in kind.options)


def build(settings: ReceiverSettings) -> Receiver:
    """Receiver with these settings. Raise ValueError for an unknown kind."""
    if settings.kind not in KINDS:
        raise ValueError(f"unknown kind of receiver {settings.kind!r}; one of {', '.join(KINDS)}")
    module = import_module(f"monitor.alert.receivers.{settings.kind}")
    receiver: Receiver = getattr(module, KINDS[settings.kind].class_name)(settings)
    return receiver
