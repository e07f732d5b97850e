"""Output to each kind of receiver: HTTP requests to a loopback server, mails, terminal."""

from __future__ import annotations

import contextlib
import io
import json
import os
import warnings
from collections.abc import Callable
from email.message import EmailMessage
from typing import Any
from unittest.mock import patch

import monitor
from monitor.alert.model import Batch
from monitor.alert.receivers.base import MailSettings, OwnerContact, ReceiverSettings
from monitor.alert.receivers.registry import build
from tests.alert.message.documents import CASES, NOW
from tests.golden.text import as_json
from tests.support.receivers.bots import Bot, DingTalkBot, FeishuBot, SlackHook, WeComBot
from tests.support.receivers.http_server import Handler, LocalServer
from tests.support.receivers.smtp_server import SmtpServer

PARCELS = {"firing": "disk_full", "owned": "zombie", "resolved": "resolved", "digest": "digest_few", "sample": "sample"}
OWNERS = {
    "zhang": OwnerContact(wecom="zhangsan", mobile="13800000000", mail="zhang@lab", feishu="ou_7d8a", slack="U024BE7LH")
}
SECRET = "of-ours-alone"
TEMPLATE = (
    "{{ id }} {{ cluster }} {{ language }} {{ severity }} {{ resolved }} {{ late_seconds }} {{ lines | length }}"
    "{% for n in notifications %}|{{ n.reason }} {{ n.severity }} {{ n.resolved }} {{ n.users }} {{ n.group }}"
    "{% for s in n.symptoms %}|{{ s.rule }} {{ s.count }}{% endfor %}"
    "{% for s in n.subjects %}|{{ s.rule }} {{ s.severity }} {{ s.cause }} {{ s.phase }} {{ s.labels }} {{ s.since }}"
    " {{ s.seconds }} {{ s.flapping }} {{ s.fresh }} {{ s.link }} {{ s.evidence | length }} {{ s.advice | length }}"
    "{% endfor %}{% endfor %}"
)
Sent = list[dict[str, Any]]


def wecom() -> str:
    """Requests to a WeCom bot."""
    return _told(lambda given: _bot("wecom", _still(WeComBot), given))


def wecom_text() -> str:
    """Requests to a WeCom bot with @all mentions, which only text messages support."""
    return _told(lambda given: _bot("wecom", _still(WeComBot), given, mention=("all",)))


def dingtalk() -> str:
    """Requests to a DingTalk bot with a secret."""
    return _told(lambda given: _bot("dingtalk", _still(DingTalkBot, secret=SECRET), given, secret=SECRET))


def feishu() -> str:
    """Requests to a Feishu bot with a secret."""
    return _told(lambda given: _bot("feishu", _still(FeishuBot, secret=SECRET), given, secret=SECRET))


def slack() -> str:
    """Requests to a Slack webhook."""
    return _told(lambda given: _bot("slack", _still(SlackHook), given))


def webhook() -> str:
    """Requests to a webhook with secret and token."""
    return _told(lambda given: _bot("webhook", LocalServer(), given, secret=SECRET, token="the-token"))


def alertmanager() -> str:
    """Requests to an Alertmanager with a token."""
    return _told(lambda given: _bot("alertmanager", LocalServer(), given, token="the-token"))


def apprise() -> str:
    """Requests that Apprise makes from title and text."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Apprise imports deprecated modules
        return _told(lambda given: _bot("apprise", LocalServer(), given))


def mail() -> str:
    """Decoded mails: sender, recipients, headers and parts in order."""
    return _told(_mail)


def console() -> str:
    """Terminal output."""
    return _told(_console)


def template() -> str:
    """Rendering of a template with every documented variable."""
    cases = tuple(case for case in PARCELS if case != "digest")  # digests have no template
    return _told(lambda given: _console(given | {"template": TEMPLATE}), ("en",), cases)


def _told(
    deliver: Callable[[dict[str, Any]], Sent],
    languages: tuple[str, ...] = ("en", "zh"),
    cases: tuple[str, ...] = tuple(PARCELS),
) -> str:
    """Deliver each batch in each language and return the output."""
    return as_json(
        [
            {"case": case, "language": lang, "sent": deliver({"language": lang, "parcel": CASES[PARCELS[case]]})}
            for case in cases
            for lang in languages
        ]
    )


def _settings(kind: str, given: dict[str, Any], **more: Any) -> tuple[ReceiverSettings, Batch]:
    values: dict[str, Any] = {
        "name": "ops", "kind": kind, "page": "https://warden.example", "cluster": "prod", "owners": OWNERS,
        "timezone": "Asia/Shanghai", "mention": ("oncall",), "timeout": 10.0,
    }  # fmt: skip
    parcel: Batch = given["parcel"]
    rest = {key: value for key, value in given.items() if key != "parcel"}
    return ReceiverSettings(**(values | rest | more)), parcel


def _still(bot: type[Bot], **more: Any) -> Bot:
    return bot(clock=lambda: NOW, **more)


def _bot(kind: str, server: LocalServer, given: dict[str, Any], **more: Any) -> Sent:
    sent: Sent = []

    def note(handler: Handler) -> None:
        asked = server.asked[-1]
        sent.append(
            {
                "method": asked.method,
                "target": handler.path,
                "headers": [[name, _header(name, value, server.port)] for name, value in handler.headers.items()],
                "body": json.loads(asked.body),
            }
        )
        handler.say(*server.answer(asked))

    server.behave = note
    with server, patch.dict(os.environ, {"NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1"}):
        url = f"json://127.0.0.1:{server.port}/hook" if kind == "apprise" else f"{server.base}/hook"
        settings, parcel = _settings(kind, given, url=getattr(server, "url", url), **more)
        build(settings).deliver(parcel)
    return sent


def _header(name: str, value: str, port: int) -> str:
    """A header without machine- and version-dependent parts."""
    if name.lower() == "accept-encoding":  # depends on installed libraries
        return "ANY"
    return value.replace(f":{port}", ":PORT").replace(f"gpuwarden/{monitor.__version__}", "gpuwarden/VERSION")


def _mail(given: dict[str, Any]) -> Sent:
    with SmtpServer() as server:
        how = MailSettings(
            host="127.0.0.1", port=server.port, sender="warden@example.com", to=("ops@example.com",), tls="none",
            to_owners=True, user=server.login[0], password=server.login[1],
        )  # fmt: skip
        settings, parcel = _settings("mail", given, mail=how)
        build(settings).deliver(parcel)
    return [{"from": each.sender, "to": each.to, "login": each.login, **_part(each.message)} for each in server.taken]


def _part(message: EmailMessage) -> dict[str, Any]:
    boundary = message.get_boundary() or "\0"
    headers = [[name, str(value).replace(boundary, "BOUNDARY")] for name, value in message.items()]
    if message.is_multipart():
        return {"headers": headers, "parts": [_part(each) for each in message.iter_parts()]}  # type: ignore[arg-type]  # the policy makes them EmailMessages
    return {"headers": headers, "text": message.get_content()}


def _console(given: dict[str, Any]) -> Sent:
    settings, parcel = _settings("console", given)
    with contextlib.redirect_stdout(io.StringIO()) as out:
        build(settings).deliver(parcel)
    return [{"text": out.getvalue()}]
