"""Every kind of receiver. A new one is its file, one line here, and its test."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from monitor.alert.receivers.alertmanager import Alertmanager
from monitor.alert.receivers.apprise import Apprise
from monitor.alert.receivers.base import Receiver, ReceiverSettings
from monitor.alert.receivers.console import Console
from monitor.alert.receivers.dingtalk import DingTalk
from monitor.alert.receivers.feishu import Feishu
from monitor.alert.receivers.mail import Mail
from monitor.alert.receivers.slack import Slack
from monitor.alert.receivers.webhook import Webhook
from monitor.alert.receivers.wecom import WeCom

KINDS: Mapping[str, Callable[[ReceiverSettings], Receiver]] = {
    "wecom": WeCom,
    "dingtalk": DingTalk,
    "feishu": Feishu,
    "slack": Slack,
    "webhook": Webhook,
    "alertmanager": Alertmanager,
    "mail": Mail,
    "console": Console,
    "apprise": Apprise,
}


def build(settings: ReceiverSettings) -> Receiver:
    """Given settings, return the receiver. Raise ValueError for a kind that does not exist."""
    if settings.kind not in KINDS:
        raise ValueError(f"there is no receiver of kind {settings.kind!r}: one of {', '.join(KINDS)}")
    return KINDS[settings.kind](settings)
