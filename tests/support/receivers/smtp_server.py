"""A minimal mail server (EHLO, STARTTLS, AUTH, MAIL, RCPT, DATA) with scripted reply codes."""

from __future__ import annotations

import base64
import socketserver
import ssl
from dataclasses import dataclass, field
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default
from pathlib import Path

from tests.support.serving import Serving


@dataclass
class Taken:
    """One mail."""

    sender: str
    to: list[str]
    encrypted: bool
    login: str | None
    raw: bytes = field(repr=False, default=b"")

    @property
    def message(self) -> EmailMessage:
        return message_from_bytes(self.raw, policy=default)


class SmtpServer(Serving):
    """Serves until the context exits. `replies` maps verbs, and `refused` recipients, to reply lines."""

    def __init__(self, certificate: tuple[Path, Path] | None = None, *, tls_at_once: bool = False) -> None:
        self.replies: dict[str, str] = {}
        self.refused: dict[str, str] = {}
        self.taken: list[Taken] = []
        self.login = ("gpuwarden", "correct horse battery")
        self.tls_at_once = tls_at_once
        self.hang_up_after: str | None = None
        self.silent = False
        self.context: ssl.SSLContext | None = None
        if certificate is not None:
            self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self.context.load_cert_chain(*certificate)
        self._server = _Server(("127.0.0.1", 0), _Session)
        super().__init__(self._server, 0.005)
        self._server.smtp = self
        self.port: int = self._server.server_address[1]


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    block_on_close = False
    allow_reuse_address = True
    smtp: SmtpServer

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignore clients that disconnect or reject the certificate: tests do that on purpose."""


class _Session(socketserver.StreamRequestHandler):
    server: _Server

    def setup(self) -> None:
        self.encrypted = False
        self.user: str | None = None
        if self.server.smtp.tls_at_once:
            self._encrypt()
        super().setup()

    def _encrypt(self) -> None:
        context = self.server.smtp.context
        assert context is not None
        self.request = context.wrap_socket(self.request, server_side=True)
        self.encrypted = True

    def finish(self) -> None:
        super().finish()
        if self.encrypted:  # the server closes only the socket it accepted
            self.request.close()

    def handle(self) -> None:
        smtp = self.server.smtp
        if smtp.silent:
            smtp.closing.wait(600)
            return
        self.say(smtp.replies.get("CONNECT", "220 mail.test ESMTP"))
        self.mail = Taken("", [], self.encrypted, None)
        while line := self.rfile.readline().decode().strip():
            verb, _, rest = line.partition(" ")
            if verb.upper() == smtp.hang_up_after or not self.obey(verb.upper(), rest):
                return

    def say(self, line: str) -> None:
        self.wfile.write(f"{line}\r\n".encode())

    def obey(self, verb: str, rest: str) -> bool:
        smtp = self.server.smtp
        if verb in smtp.replies:
            self.say(smtp.replies[verb])
        elif verb == "EHLO":
            offers = ["250-mail.test"]
            offers += ["250-STARTTLS"] if smtp.context is not None and not self.encrypted else []
            self.wfile.write("".join(f"{line}\r\n" for line in [*offers, "250 AUTH PLAIN"]).encode())
        elif verb == "STARTTLS":
            self.say("220 go ahead")
            self._encrypt()
            super().setup()
        elif verb == "AUTH":
            _, user, password = base64.b64decode(rest.rpartition(" ")[2]).decode().split("\0")
            self.user = user
            self.say("235 welcome" if (user, password) == smtp.login else f"535 5.7.8 wrong: {password}")
        elif verb == "MAIL":
            self.mail = Taken(_address(rest), [], self.encrypted, self.user)
            self.say("250 ok")
        elif verb == "RCPT":
            self.recipient(_address(rest))
        elif verb == "DATA":
            self.data()
        elif verb == "QUIT":
            self.say("221 bye")
            return False
        else:
            self.say("250 ok")
        return True

    def recipient(self, to: str) -> None:
        refusal = self.server.smtp.refused.get(to)
        if refusal is None:
            self.mail.to.append(to)
        self.say(refusal or "250 ok")

    def data(self) -> None:
        self.say("354 go on")
        lines = []
        while (line := self.rfile.readline()) not in (b".\r\n", b""):
            lines.append(line.removeprefix(b".") if line.startswith(b"..") else line)
        self.mail.raw = b"".join(lines)
        reply = self.server.smtp.replies.get("MESSAGE", "250 queued")
        if reply.startswith("2"):
            self.server.smtp.taken.append(self.mail)
        self.say(reply)


def _address(text: str) -> str:
    return text[text.index("<") + 1 : text.index(">")]
