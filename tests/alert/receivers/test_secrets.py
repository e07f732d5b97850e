"""Whatever fails, neither logs nor errors nor reprs contain a secret."""

from __future__ import annotations

import base64
import io
import logging
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from monitor.alert.alertmanager.silences import AlertmanagerSilences
from monitor.alert.receivers.base import MailSettings, Receiver, ReceiverSettings
from monitor.alert.receivers.common import endpoint_of
from monitor.base.http import RequestError
from monitor.base.logs import LogfmtFormatter
from tests.alert.receivers.batches import batch, receiver
from tests.support import free_port
from tests.support.receivers.http_server import (
    Behaviour,
    Handler,
    LocalServer,
    echoes,
    hangs_up,
    make_certificate,
    resets,
    says,
    trickles_its_headers,
)
from tests.support.receivers.smtp_server import SmtpServer

KEY = "planted-key-1a2b3c"
PATH = "planted-path-4d5e6f"
SECRET = 'planted/sec"ret+7a8b9c'
TOKEN = "planted-token-0d1e2f"
PASSWORD = "planted-password-3a4b5c"
LOGIN = "planted-login-6d7e8f"
PLANTED = (KEY, PATH, SECRET, TOKEN, PASSWORD, LOGIN)
SECRETS = {
    *PLANTED,
    "planted",
    quote(SECRET, safe=""),
    base64.b64encode(f"zhang:{LOGIN}".encode()).decode(),
    base64.b64encode(f"warden:{PASSWORD}".encode()).decode(),
}
KINDS = ("wecom", "dingtalk", "feishu", "slack", "webhook", "alertmanager", "apprise")


def has_broken_headers(handler: Handler) -> None:
    """Response about which urllib3 logs a warning with the whole URL."""
    handler.wfile.write(b"HTTP/1.1 400 Bad Request\r\nnot a header\r\nX: y\r\nContent-Length: 0\r\n\r\n")


def sends_back(handler: Handler) -> None:
    handler.say(302, Location=f"https://{KEY}.example.com/{PATH}?{handler.path}")


def echoes_as_a_bot(handler: Handler) -> None:
    words = f"no such key: {handler.path} {dict(handler.headers)} {SECRET} {quote(SECRET, safe='')}"
    handler.say(200, {"errcode": 1, "errmsg": words, "code": 1, "msg": words})


BEHAVIOURS: list[Behaviour] = [
    says(200, {"errcode": 0, "errmsg": "ok", "code": 0, "msg": "ok", "ok": True}), says(500, b"oops"), echoes,
    echoes_as_a_bot, sends_back, resets, hangs_up, has_broken_headers, trickles_its_headers,
]  # fmt: skip


@pytest.fixture
def log() -> Iterator[io.StringIO]:
    """Everything that is logged at the lowest level, formatted as in production."""
    written, root = io.StringIO(), logging.getLogger()
    handler = logging.StreamHandler(written)
    handler.setFormatter(LogfmtFormatter())
    levels = {name: logging.getLogger(name).level for name in (None, "urllib3", "requests", "apprise")}
    for name in levels:
        logging.getLogger(name).setLevel(logging.DEBUG)
    root.addHandler(handler)
    yield written
    root.removeHandler(handler)
    for name, level in levels.items():
        logging.getLogger(name).setLevel(level)


def everything(to: Any, work: Callable[[], object]) -> str:
    """Everything that a delivery returns, raises or shows."""
    try:
        out = repr(work())
    except RequestError as error:
        logging.getLogger("monitor.test").exception("delivering failed")
        chain = [error, error.__cause__, error.__context__]
        out = "".join(f"{each!r} {each} {getattr(each, 'args', ())}" for each in chain)
        out += "".join(traceback.format_exception(error))
    return f"{out} {to!r} {to}"


def planted(kind: str, base: str, **more: Any) -> Receiver:
    url = base.replace("://", f"://zhang:{LOGIN}@") + f"/{PATH}/{PATH}?key={KEY}&access_token={KEY}"
    if kind == "apprise":
        url = url.replace("http", "json", 1)
    # The first time, Apprise loads all its plug-ins.
    return receiver(kind, url, secret=SECRET, token=TOKEN, timeout=5.0 if kind == "apprise" else 1.5, **more)


def assert_discreet(text: str) -> None:
    found = [secret for secret in SECRETS if secret in text]
    assert not found, f"{found} in: {text}"


@pytest.mark.filterwarnings("ignore:'imghdr' is deprecated:DeprecationWarning")  # Apprise imports it
@pytest.mark.parametrize("behave", BEHAVIOURS)
@pytest.mark.parametrize("kind", KINDS)
def test_no_receiver_tells_a_secret(kind: str, behave: Behaviour, log: io.StringIO) -> None:
    with LocalServer(behave) as server:
        to = planted(kind, server.base)
        assert_discreet(everything(to, lambda: to.deliver(batch())))
        assert server.asked, "it was really asked"
    assert_discreet(log.getvalue())


@pytest.mark.parametrize("kind", KINDS[:-1])
def test_nor_when_nobody_is_there_or_the_proxy_is_not(kind: str, log: io.StringIO) -> None:
    for to in (
        planted(kind, f"http://127.0.0.1:{free_port()}"),
        planted(kind, "http://hooks.invalid"),
        planted(kind, "https://hooks.invalid", proxy=f"http://warden:{PASSWORD}@127.0.0.1:{free_port()}"),
        planted(kind, "nonsense://hooks.invalid"),
        planted(kind, "http://[::1"),
    ):
        assert_discreet(everything(to, lambda to=to: to.deliver(batch())))  # type: ignore[misc]  # of defaults mypy infers nothing
    assert_discreet(log.getvalue())


@pytest.mark.parametrize("behave", [says(407, PASSWORD.encode()), says(502, PASSWORD.encode()), echoes, hangs_up])
@pytest.mark.parametrize("scheme", ["http", "https"])
def test_nor_that_of_a_proxy(scheme: str, behave: Behaviour, log: io.StringIO, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Handler, "do_CONNECT", Handler.do_POST, raising=False)
    with LocalServer(behave) as proxy:
        to = planted("webhook", f"{scheme}://hooks.invalid", proxy=f"http://warden:{PASSWORD}@127.0.0.1:{proxy.port}")
        assert_discreet(everything(to, lambda: to.deliver(batch())))
        assert proxy.asked
    assert_discreet(log.getvalue())


def test_nor_when_tls_is_wrong(tmp_path: Path, log: io.StringIO) -> None:
    with LocalServer(certificate=make_certificate(tmp_path)) as server:
        to = planted("wecom", server.base)
        assert_discreet(everything(to, lambda: to.deliver(batch())))
    assert_discreet(log.getvalue())


@pytest.mark.parametrize("reply", ["535 wrong", f"535 wrong: {PASSWORD}", f"454 {PASSWORD}"])
def test_nor_that_of_mail(reply: str, log: io.StringIO) -> None:
    with SmtpServer() as server:
        server.replies["AUTH"] = reply
        settings = MailSettings(
            host="127.0.0.1", port=server.port, sender="a@example.com", to=("b@example.com",), tls="none",
            user="warden", password=PASSWORD,
        )  # fmt: skip
        to = receiver("mail", mail=settings)
        assert_discreet(everything(to, lambda: to.deliver(batch())))
    assert_discreet(f"{log.getvalue()} {settings}")


@pytest.mark.parametrize("behave", [echoes, says(200, [{"id": KEY}]), resets])
def test_nor_who_reads_silences(behave: Behaviour, log: io.StringIO) -> None:
    with LocalServer(behave) as server:
        settings = ReceiverSettings(
            name="am", kind="alertmanager", url=server.base.replace("//", f"//zhang:{LOGIN}@"), token=TOKEN
        )
        silences = AlertmanagerSilences(endpoint_of(settings), TOKEN)
        silences.refresh()
        assert silences.error
    assert_discreet(f"{log.getvalue()} {silences.error} {silences!r} {settings!r} {endpoint_of(settings)!r}")


def test_the_grep_finds_what_is_there(log: io.StringIO) -> None:
    logging.getLogger("urllib3.connectionpool").debug("POST /%s", PATH)
    with pytest.raises(AssertionError):
        assert_discreet(log.getvalue())
