"""Mail over SMTP, as text and HTML, with STARTTLS, TLS or neither."""

from __future__ import annotations

import re
import smtplib
import socket
import ssl
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from email.message import EmailMessage
from email.utils import format_datetime
from typing import Any

from monitor.alert.message.document import AlertMessage
from monitor.alert.message.formats import html, plain
from monitor.alert.message.formats.charts import charts_html
from monitor.alert.model import Batch, Notification
from monitor.alert.receivers.base import DeliveryError, ReceiverSettings
from monitor.alert.receivers.common import ID_HEADER, BaseReceiver, MessageWriter
from monitor.base.endpoint import Endpoint
from monitor.base.text import clean, shorten
from monitor.base.threads import Cancellation, with_deadline

MAX_TEXT_BYTES = 60_000
MAX_SUBJECT_CHARS = 150
PERMANENT_CODE = 500  # SMTP replies from here on are final


class _HeldSmtp(smtplib.SMTP):
    """A session that can be broken off from its first byte: connecting reads the greeting of the server."""

    def __init__(self, cancellation: Cancellation, **options: Any) -> None:
        self._cancellation = cancellation
        super().__init__(**options)

    def _get_socket(self, host: str, port: int, timeout: float) -> socket.socket:
        connection: socket.socket = super()._get_socket(host, port, timeout)  # type: ignore[misc]  # not in the stubs
        try:
            self._cancellation.hold(connection)
        except BaseException:
            connection.close()
            raise
        return connection


class _HeldTlsSmtp(_HeldSmtp, smtplib.SMTP_SSL):
    """The same with TLS from the first byte, whose handshake has a deadline of its own."""


class Mail(BaseReceiver):
    """A mail server. If so configured, the owners of the affected jobs are recipients as well."""

    kind = "mail"

    def __init__(self, settings: ReceiverSettings) -> None:
        super().__init__(settings)
        if settings.mail is None:
            raise ValueError(f"receiver {settings.name} has no mail settings")
        mail = self._mail = settings.mail
        secrets = (mail.password,) if mail.password else ()
        self.endpoint = Endpoint(f"smtp://{mail.host}:{mail.port}", timeout=settings.timeout, secrets=secrets)
        self._plain = MessageWriter(self, plain.MARKUP)
        self._html = MessageWriter(self, html.MARKUP)

    def capacity(self, notifications: Sequence[Notification]) -> int:
        return self._html.capacity(notifications, MAX_TEXT_BYTES)

    def deliver(self, batch: Batch) -> str:
        mail, recipients = self._compose(batch)
        if not recipients:
            raise DeliveryError("this mail has no recipients", retryable=False)
        timeout = self.settings.timeout
        try:
            result = with_deadline(timeout, lambda cancellation: self._send(mail, recipients, cancellation))
        except TimeoutError:
            result = DeliveryError(f"{self.endpoint.host}: not finished within {timeout:g} s", retryable=True)
        if isinstance(result, DeliveryError):
            raise result
        return result

    def _compose(self, batch: Batch) -> tuple[EmailMessage, list[str]]:
        message = self._plain.message(batch)
        recipients = list(dict.fromkeys([*self._mail.to, *self._owners(batch)]))
        mail = EmailMessage()
        mail["From"] = self._mail.sender
        mail["To"] = ", ".join(recipients)
        mail["Subject"] = shorten(clean(message.title), MAX_SUBJECT_CHARS)
        mail["Date"] = format_datetime(datetime.fromtimestamp(batch.at, UTC))
        domain = self._mail.sender.rpartition("@")[2].strip("> ")
        mail["Message-ID"] = f"<{_id_part(batch.id)}@{_id_part(domain)}>"
        mail["Auto-Submitted"] = "auto-generated"  # prevents out-of-office replies
        mail[ID_HEADER] = _id_part(batch.id)
        mail.set_content(self._plain.text(batch, message, MAX_TEXT_BYTES))
        if not self._plain.uses_template(batch):
            mail.add_alternative(self._html_body(batch, message), subtype="html")
        return mail, recipients

    def _html_body(self, batch: Batch, message: AlertMessage) -> str:
        text = self._html.text(batch, message, MAX_TEXT_BYTES)
        return text if message.charts is None else f"{text}\n{charts_html(message.charts, message.lang)}"

    def _owners(self, batch: Batch) -> list[str]:
        if not self._mail.to_owners:
            return []
        users = [user for notification in batch.notifications for user in notification.users]
        owners = [self.settings.owners[user] for user in users if user in self.settings.owners]
        return [owner.mail for owner in owners if owner.mail]

    def _send(self, mail: EmailMessage, recipients: list[str], cancellation: Cancellation) -> str | DeliveryError:
        try:
            with self._connect(cancellation) as server:
                if self._mail.tls == "starttls":
                    server.starttls(context=self._tls_context())
                if self._mail.user is not None:
                    server.login(self._mail.user, self._mail.password or "")
                refused = server.send_message(mail, from_addr=self._mail.sender, to_addrs=recipients)
        except Exception as error:  # smtplib also raises errors of ssl, sockets and codecs
            return self._failure(error)
        return f"accepted, but not for {', '.join(sorted(refused))}" if refused else "accepted"

    def _connect(self, cancellation: Cancellation) -> smtplib.SMTP:
        options: dict[str, Any] = {"host": self._mail.host, "port": self._mail.port, "timeout": self.settings.timeout}
        if self._mail.tls == "tls":
            return _HeldTlsSmtp(cancellation, **options, context=self._tls_context())
        return _HeldSmtp(cancellation, **options)

    def _tls_context(self) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=self.settings.ca_file)
        if not self.settings.verify_tls:
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        return context

    def _failure(self, error: Exception) -> DeliveryError:
        """Error in our words, or in the server's words without the password."""
        host = self.endpoint.host
        if isinstance(error, smtplib.SMTPRecipientsRefused):
            return self._refused(error.recipients)
        if isinstance(error, smtplib.SMTPResponseException):
            answer = f"{error.smtp_code} {self._redacted(error.smtp_error)}".rstrip()
            return DeliveryError(f"{host} answered {answer}", retryable=error.smtp_code < PERMANENT_CODE)
        if isinstance(error, ssl.SSLCertVerificationError):
            return DeliveryError(f"{host}: the certificate is not trusted ({error.verify_message})", retryable=False)
        if isinstance(error, smtplib.SMTPNotSupportedError):
            return DeliveryError(f"{host} does not support STARTTLS or the configured login", retryable=False)
        if isinstance(error, smtplib.SMTPServerDisconnected):
            return DeliveryError(f"{host}: connection closed", retryable=True)
        reason = error.strerror if isinstance(error, OSError) else None
        return DeliveryError(f"{host}: {reason or type(error).__name__}", retryable=True)

    def _refused(self, recipients: Mapping[str, tuple[int, bytes]]) -> DeliveryError:
        """Refusal of all recipients; retryable as long as one of them may be accepted later."""
        answers = "; ".join(f"{to}: {code} {self._redacted(text)}" for to, (code, text) in recipients.items())
        final = all(code >= PERMANENT_CODE for code, _ in recipients.values())
        text = f"{self.endpoint.host} refuses mail for {self.endpoint.redact(answers)}"
        return DeliveryError(text, retryable=not final)

    def _redacted(self, answer: bytes | str) -> str:
        return self.endpoint.redact(answer.decode("utf-8", "replace") if isinstance(answer, bytes) else answer)


def _id_part(text: str) -> str:
    """Text with only the characters that a Message-ID may contain."""
    return re.sub(r"[^A-Za-z0-9.-]", "-", text) or "gpuwarden"
