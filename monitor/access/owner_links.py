"""Links by which an owner answers a notice without an account: signed, for one object, and valid for a while.

A link is a capability: whoever has it may answer once, with what it permits: to keep the object, and to release it only
if the message with the link reached the owner alone. It is signed with a key that only this daemon has, so that nothing
in it can be changed.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import logging
import os
import secrets
from contextlib import suppress

import msgspec

from monitor.base.private_files import make_private_directory
from monitor.facts.base import Identifier

log = logging.getLogger(__name__)
FILE = "owner-links.key"
KEY_BYTES = 32
SIGNATURE_BYTES = 16
MAX_LINK_CHARS = 2000
CREATE_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
READ_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC  # a pipe in its place must not block
_PURPOSE = b"gpuwarden owner link 1"  # the key signs nothing else


class OwnerLink(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """What a link is about: an item of a cleanup policy, by the id that no other object has; and what it permits."""

    id: Identifier
    policy: Identifier
    item: str
    owner: Identifier
    expires_at: int
    may_release: bool = False  # links of earlier versions only keep


class LinkInvalidError(ValueError):
    """The link was not made here, or was changed."""


class LinkExpiredError(ValueError):
    """The link was valid until some time ago."""


class LinkSigner:
    """Makes and checks links."""

    def __init__(self, key: bytes) -> None:
        self._key = key

    def sign(self, policy: str, item: str, owner: str, expires_at: float, *, may_release: bool = False) -> str:
        """A new link. Raise ValueError if what it is about is too long for a link."""
        link = OwnerLink(secrets.token_hex(8), policy, item, owner, int(expires_at), may_release)
        body = msgspec.json.encode(link)
        text = _encoded(self._signature(body) + body)
        if len(text) > MAX_LINK_CHARS:
            raise ValueError("too long for a link")
        return text

    def check(self, text: str, now: float) -> OwnerLink:
        """What a link is about. Raise LinkInvalidError or LinkExpiredError."""
        try:
            content = _decoded(text)
            signature, body = content[:SIGNATURE_BYTES], content[SIGNATURE_BYTES:]
            if not hmac.compare_digest(signature, self._signature(body)):
                raise LinkInvalidError
            link = msgspec.json.decode(body, type=OwnerLink)
        except (binascii.Error, UnicodeError, msgspec.MsgspecError):
            raise LinkInvalidError from None
        if now >= link.expires_at:
            raise LinkExpiredError
        return link

    def _signature(self, body: bytes) -> bytes:
        return hmac.digest(self._key, _PURPOSE + body, hashlib.sha256)[:SIGNATURE_BYTES]


def load_signer(state: str) -> LinkSigner:
    """The signer with the key of a state directory, which is created at the first start.

    If the file cannot be read or written, links end with this process.
    """
    path = os.path.join(state, FILE)
    try:
        make_private_directory(state)
        if not os.path.lexists(path):
            _create_key(path)
        with open(os.open(path, READ_FLAGS), "rb") as file:
            key = file.read(KEY_BYTES + 1)
        if len(key) == KEY_BYTES:
            return LinkSigner(key)
        log.error("links to owners end with this process: %s is damaged; delete it", path)
    except OSError as error:
        log.error("links to owners end with this process: %s cannot be used: %s", path, error)
    return LinkSigner(secrets.token_bytes(KEY_BYTES))


def _create_key(path: str) -> None:
    """Put a new key into place as a whole."""
    temporary = f"{path}.new"
    with suppress(FileNotFoundError):
        os.unlink(temporary)
    with open(os.open(temporary, CREATE_FLAGS, 0o600), "wb") as file:
        file.write(secrets.token_bytes(KEY_BYTES))
    os.replace(temporary, path)


def _encoded(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode("ascii")


def _decoded(text: str) -> bytes:
    if len(text) > MAX_LINK_CHARS or not text.isascii():
        raise LinkInvalidError
    content = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    if _encoded(content) != text:  # one link has one spelling
        raise LinkInvalidError
    return content
