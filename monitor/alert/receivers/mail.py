"""E-mail over SMTP: text and HTML, with STARTTLS, TLS or neither."""

from __future__ import annotations

import re
import smtplib
import ssl
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from email.message import EmailMessage
from email.utils import format_datetime
from typing import Any

from monitor.alert.message.formats import html, plain
from monitor.alert.message.formats.base import clean, shorten
from monitor.alert.model import Batch, Notification
from monitor.alert.receivers.base import DeliveryError, ReceiverSettings
from monitor.alert.receivers.configured import ID_HEADER, BaseReceiver, MessageWriter
from monitor.base.endpoint import Endpoint
from monitor.base.threads import Cancellation, with_deadline

LIMIT = 60_000  # bytes of a text; nobody reads more
SUBJECT = 150
PERMANENT = 500  # replies from here on are final


class Mail(BaseReceiver):
    """A mail server that takes our messages. The owners of what they are about get them, too, if so configured."""

    kind = "mail"

    def __init__(self, settings: ReceiverSettings) -> None:
        super().__init__(settings)
        if settings.mail is None:
            raise ValueError(f"receiver {settings.name} has no mail settings")
        self._mail = settings.mail
        secrets = (settings.mail.password,) if settings.mail.password else ()
        self._way = Endpoint(
            f"smtp://{settings.mail.host}:{settings.mail.port}", timeout=settings.timeout, secrets=secrets
        )
        self._plain = MessageWriter(self, plain.MARKUP)
        self._html = MessageWriter(self, html.MARKUP)

    def holds(self, notifications: Sequence[Notification]) -> int:
        return self._html.holds(notifications, LIMIT)

    def deliver(self, parcel: Batch) -> str:
        message, to = self._message(parcel)
        if not to:
            raise DeliveryError("there is nobody to send this mail to", retryable=False)
        try:
            result = with_deadline(self.settings.timeout, lambda line: self._send(message, to, line))
        except TimeoutError:
            result = DeliveryError(f"{self._way.host}: not done within {self._way.timeout:g} s", retryable=True)
        if isinstance(result, DeliveryError):
            raise result
        return result

    def _message(self, parcel: Batch) -> tuple[EmailMessage, list[str]]:
        letter = self._plain.letter(parcel)
        to = list(dict.fromkeys([*self._mail.to, *self._owners(parcel)]))
        message = EmailMessage()
        message["From"] = self._mail.sender
        message["To"] = ", ".join(to)
        message["Subject"] = shorten(clean(letter.title), SUBJECT)
        message["Date"] = format_datetime(datetime.fromtimestamp(parcel.at, UTC))
        message["Message-ID"] = f"<{_word(parcel.id)}@{_word(self._mail.sender.rpartition('@')[2].strip('> '))}>"
        message["Auto-Submitted"] = "auto-generated"  # nobody's holiday notice answers it
        message[ID_HEADER] = _word(parcel.id)
        message.set_content(self._plain.text(parcel, letter, LIMIT))
        if not self._plain.templated(parcel):
            message.add_alternative(self._html.text(parcel, letter, LIMIT), subtype="html")
        return message, to

    def _owners(self, parcel: Batch) -> list[str]:
        if not self._mail.to_owners:
            return []
        users = [user for each in parcel.notifications for user in each.users]
        owners = [self.settings.owners[user] for user in users if user in self.settings.owners]
        return [owner.mail for owner in owners if owner.mail]

    def _send(self, message: EmailMessage, to: list[str], line: Cancellation) -> str | DeliveryError:
        try:
            with self._connect() as server:
                if server.sock is not None:
                    line.hold(server.sock)
                if self._mail.tls == "starttls":
                    server.starttls(context=self._context())
                if self._mail.user is not None:
                    server.login(self._mail.user, self._mail.password or "")
                refused = server.send_message(message, from_addr=self._mail.sender, to_addrs=to)
        except Exception as error:  # smtplib lets through what ssl, sockets and codecs raise: each is a failed attempt
            return self._failure(error)
        return f"taken, but not for {', '.join(sorted(refused))}" if refused else "taken"

    def _connect(self) -> smtplib.SMTP:
        where: dict[str, Any] = {"host": self._mail.host, "port": self._mail.port, "timeout": self.settings.timeout}
        if self._mail.tls == "tls":
            return smtplib.SMTP_SSL(**where, context=self._context())
        return smtplib.SMTP(**where)

    def _context(self) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=self.settings.ca_file)
        if not self.settings.verify_tls:
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        return context

    def _failure(self, error: Exception) -> DeliveryError:
        """Given what was raised, return it in our words, or in the server's without our password."""
        host = self._way.host
        if isinstance(error, smtplib.SMTPRecipientsRefused):
            return self._refused(error.recipients)
        if isinstance(error, smtplib.SMTPResponseException):
            said = f"{error.smtp_code} {self._said(error.smtp_error)}".rstrip()
            return DeliveryError(f"{host} answered {said}", retryable=error.smtp_code < PERMANENT)
        if isinstance(error, ssl.SSLCertVerificationError):
            return DeliveryError(f"{host}: the certificate is not trusted ({error.verify_message})", retryable=False)
        if isinstance(error, smtplib.SMTPNotSupportedError):
            return DeliveryError(f"{host} offers no STARTTLS, or not the login that is configured", retryable=False)
        if isinstance(error, smtplib.SMTPServerDisconnected):
            return DeliveryError(f"{host}: the connection was broken off", retryable=True)
        why = error.strerror if isinstance(error, OSError) else None
        return DeliveryError(f"{host}: {why or type(error).__name__}", retryable=True)

    def _refused(self, recipients: Mapping[str, tuple[int, bytes]]) -> DeliveryError:
        """Return that nobody was accepted. As long as one of them may be later, it is tried again."""
        answers = "; ".join(f"{to}: {code} {self._said(said)}" for to, (code, said) in recipients.items())
        final = all(code >= PERMANENT for code, _ in recipients.values())
        return DeliveryError(f"{self._way.host} takes no mail for {self._way.redact(answers)}", retryable=not final)

    def _said(self, words: bytes | str) -> str:
        return self._way.redact(words.decode("utf-8", "replace") if isinstance(words, bytes) else words)


def _word(text: str) -> str:
    """Given a text, return what of it may stand in a Message-ID."""
    return re.sub(r"[^A-Za-z0-9.-]", "-", text) or "gpuwarden"
