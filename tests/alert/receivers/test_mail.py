from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from monitor.alert.receivers.base import MailSettings, OwnerContact, Receiver
from monitor.alert.receivers.common import MessageWriter
from tests.alert.receivers.batches import batch, finding, notification, receiver, refusal, subject
from tests.support import free_port
from tests.support.receivers.http_server import make_certificate
from tests.support.receivers.smtp_server import SmtpServer

LOGIN = {"user": "gpuwarden", "password": "correct horse battery"}
OWNERS = {"zhang": OwnerContact(mail="zhang@example.com"), "li": OwnerContact(wecom="lisi")}


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return make_certificate(tmp_path_factory.mktemp("tls"))


def mail(server: SmtpServer | int, tls: str = "none", **more: Any) -> Receiver:
    port = server if isinstance(server, int) else server.port
    given: dict[str, Any] = {"host": "127.0.0.1", "port": port, "to": ("ops@example.com",), "tls": tls}
    given["sender"] = "warden@example.com"
    given |= {name: more.pop(name) for name in ("to", "to_owners", "user", "password") if name in more}
    return receiver("mail", mail=MailSettings(**given), **more)


def test_a_mail() -> None:
    with SmtpServer() as server:
        assert mail(server, language="zh").deliver(batch(at=1_700_000_000.0)) == "accepted"
    message = server.taken[0].message
    plain, html = message.get_body(("plain",)), message.get_body(("html",))
    assert plain is not None
    assert html is not None
    assert message["From"] == "warden@example.com"
    assert message["To"] == "ops@example.com"
    assert message["Date"] == "Tue, 14 Nov 2023 22:13:20 +0000"
    assert message["Message-ID"] == "<batch-1@example.com>"
    assert message["X-Gpuwarden-Id"] == "batch-1"
    assert message["Auto-Submitted"] == "auto-generated"
    assert "磁盘" in message["Subject"]
    assert "/data" in plain.get_content()
    assert "<b style=" in html.get_content()


def test_a_retry_has_the_same_id() -> None:
    with SmtpServer() as server:
        to = mail(server)
        to.deliver(batch(at=1.0))
        to.deliver(batch(at=900.0))
    assert len({each.message["Message-ID"] for each in server.taken}) == 1


@pytest.mark.parametrize(
    ("to", "to_owners", "expected"),
    [
        (("ops@example.com",), False, ["ops@example.com"]),
        (("ops@example.com",), True, ["ops@example.com", "zhang@example.com"]),
        ((), True, ["zhang@example.com"]),
        (("zhang@example.com",), True, ["zhang@example.com"]),
    ],
)
def test_who_gets_it(to: tuple[str, ...], to_owners: bool, expected: list[str]) -> None:
    with SmtpServer() as server:
        about = notification(subject(finding(user="zhang")), users=("zhang", "li", "nobody"))
        mail(server, to=to, to_owners=to_owners, owners=OWNERS).deliver(batch(about))
    assert server.taken[0].to == expected


def test_nobody_to_send_to() -> None:
    error = refusal(mail(free_port(), to=(), to_owners=True, owners=OWNERS), batch(notification(users=("li",))))
    assert (str(error), error.retryable) == ("this mail has no recipients", False)


def test_encrypted_with_starttls_and_logged_in(certificate: tuple[Path, Path]) -> None:
    with SmtpServer(certificate) as server:
        mail(server, "starttls", ca_file=str(certificate[0]), **LOGIN).deliver(batch())
    assert (server.taken[0].encrypted, server.taken[0].login) == (True, "gpuwarden")


def test_encrypted_from_the_first_byte(certificate: tuple[Path, Path]) -> None:
    with SmtpServer(certificate, tls_at_once=True) as server:
        mail(server, "tls", ca_file=str(certificate[0])).deliver(batch())
    assert server.taken[0].encrypted


@pytest.mark.parametrize("tls", ["starttls", "tls"])
def test_a_certificate_that_nobody_has_signed_is_not_trusted(certificate: tuple[Path, Path], tls: str) -> None:
    with SmtpServer(certificate, tls_at_once=tls == "tls") as server:
        error = refusal(mail(server, tls, **LOGIN))
        assert (error.retryable, "the certificate is not trusted (self-signed" in str(error)) == (False, True)
        assert mail(server, tls, verify_tls=False).deliver(batch()) == "accepted"


def test_no_password_goes_out_where_encryption_is_wanted_and_not_offered() -> None:
    with SmtpServer() as server:
        error = refusal(mail(server, "starttls", **LOGIN))
    assert (error.retryable, "does not support STARTTLS" in str(error)) == (False, True)
    assert server.taken == []


REPLIES: list[tuple[str, Callable[[SmtpServer], object], bool, str]] = [
    ("busy at once", lambda s: s.replies.update(CONNECT="421 busy"), True, "421 busy"),
    ("not for you", lambda s: s.replies.update(CONNECT="554 no"), False, "554 no"),
    ("sender later", lambda s: s.replies.update(MAIL="451 greylisted"), True, "451 greylisted"),
    ("sender never", lambda s: s.replies.update(MAIL="550 not you"), False, "550 not you"),
    ("recipient later", lambda s: s.refused.update({"ops@example.com": "450 full"}), True, "450 full"),
    ("recipient never", lambda s: s.refused.update({"ops@example.com": "550 unknown"}), False, "550 unknown"),
    ("content later", lambda s: s.replies.update(MESSAGE="452 disk full"), True, "452 disk full"),
    ("content never", lambda s: s.replies.update(MESSAGE="552 too large"), False, "552 too large"),
    ("login later", lambda s: s.replies.update(AUTH="454 later"), True, "454 later"),
    ("hanging up", lambda s: setattr(s, "hang_up_after", "MAIL"), True, "connection closed"),
]


@pytest.mark.parametrize(
    ("script", "retryable", "words"), [row[1:] for row in REPLIES], ids=[row[0] for row in REPLIES]
)
def test_what_it_answers(script: Callable[[SmtpServer], object], retryable: bool, words: str) -> None:
    with SmtpServer() as server:
        script(server)
        error = refusal(mail(server, **LOGIN))
    assert (error.retryable, words in str(error)) == (retryable, True)


def test_a_wrong_password_is_not_repeated_though_the_server_does() -> None:
    with SmtpServer() as server:
        error = refusal(mail(server, user="gpuwarden", password="wrong password"))
    assert (error.retryable, "535 5.7.8 wrong: ***" in str(error)) == (False, True)


def test_one_of_two_recipients_is_enough() -> None:
    with SmtpServer() as server:
        server.refused["gone@example.com"] = "550 unknown"
        answer = mail(server, to=("ops@example.com", "gone@example.com")).deliver(batch())
    assert answer == "accepted, but not for gone@example.com"


def test_as_long_as_one_may_be_accepted_later_it_is_tried_again() -> None:
    with SmtpServer() as server:
        server.refused |= {"gone@example.com": "550 unknown", "ops@example.com": "450 full"}
        assert refusal(mail(server, to=("ops@example.com", "gone@example.com"))).retryable


def test_the_time_limit_is_one_for_all_of_it() -> None:
    with SmtpServer() as server:
        server.silent = True
        error = refusal(mail(server, timeout=0.3))
    assert error.retryable


def test_nobody_there() -> None:
    error = refusal(mail(free_port()))
    assert (error.retryable, "Connection refused" in str(error)) == (True, True)


def test_a_template_makes_a_text_without_html() -> None:
    with SmtpServer() as server:
        mail(server, template="{{ title }}\nby template").deliver(batch())
    message = server.taken[0].message
    assert message.get_body(("html",)) is None
    assert message.get_content().splitlines()[1] == "by template"


def test_what_users_write_makes_no_headers(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "/data\r\nBcc: everybody@example.com\r\n\ud800"
    real = MessageWriter.message
    with SmtpServer() as server:
        mail(server).deliver(batch(notification(subject(finding(mount=text)))))
        # The same if the text reaches the mail as it was written.
        monkeypatch.setattr(MessageWriter, "message", lambda self, given: replace(real(self, given), title=text))
        mail(server).deliver(batch())
    assert [taken.message["Bcc"] for taken in server.taken] == [None, None]


def test_a_digest_of_hundreds() -> None:
    waiting = [notification(subject(finding(mount=f"/数据/{number}"))) for number in range(200)]
    assert mail(free_port()).capacity(waiting) > 100
