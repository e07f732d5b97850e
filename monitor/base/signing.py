"""Ed25519 signatures of requests: the daemon signs with its private key, agents verify with public keys only.

A signature covers the name of the node, method, path, time and body, so that a request that was signed for one node is
worthless at any other. The library is loaded with the first key or signature, because an idle agent does not need it.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from dataclasses import dataclass, field
from typing import Self
from urllib.parse import quote, unquote

SCHEME = "GPUwarden-Ed25519"
PRIVATE_PREFIX, PUBLIC_PREFIX = "gpuwarden-private-ed25519:", "gpuwarden-public-ed25519:"
MAX_PUBLIC_KEYS = 8
_DOMAIN = "gpuwarden action request 1"  # separates these signatures from any other use of the key
_KEY_BYTES, _SIGNATURE_BYTES = 32, 64
_MAX_HEADER_CHARS = 2048
_FIELDS = ("key", "node", "at", "signature")
_SECONDS = re.compile(r"[0-9]{1,12}")


@dataclass(frozen=True)
class KeyPair:
    """A new key pair, as text for the two files."""

    private: str = field(repr=False)
    public: str


@dataclass(frozen=True)
class RequestSignature:
    """The content of an Authorization header. `node` and `at` are claims until the signature is verified."""

    key_id: str
    node: str
    at: str
    signature: bytes

    @classmethod
    def parse(cls, header: str) -> Self | None:
        """The signature in a header, or None if the header is anything else."""
        scheme, _, rest = header.partition(" ")
        if scheme.lower() != SCHEME.lower() or len(header) > _MAX_HEADER_CHARS:
            return None
        values = dict(part.strip().partition("=")[::2] for part in rest.split(","))
        if tuple(values) != _FIELDS or not _SECONDS.fullmatch(values["at"]):
            return None
        try:
            signature = base64.b64decode(values["signature"], validate=True)
        except (binascii.Error, ValueError):
            return None
        if len(signature) != _SIGNATURE_BYTES:
            return None
        return cls(values["key"], unquote(values["node"]), values["at"], signature)

    def header(self) -> str:
        """The value of the Authorization header."""
        signature = base64.b64encode(self.signature).decode()
        return f"{SCHEME} key={self.key_id}, node={quote(self.node, safe='')}, at={self.at}, signature={signature}"


class RequestSigner:
    """Signs requests with a private key."""

    def __init__(self, private: str) -> None:
        """Raise ValueError unless `private` is the text of a private key."""
        from nacl.signing import SigningKey

        self._key = SigningKey(_decode(private.strip(), PRIVATE_PREFIX, "private"))
        self.key_id = _key_id(bytes(self._key.verify_key))

    def sign(self, node: str, method: str, path: str, body: bytes, now: float) -> str:
        """Authorization header of a request to the agent of a node."""
        at = str(int(now))
        signature = self._key.sign(_message(node, method, path, at, body)).signature
        return RequestSignature(self.key_id, node, at, signature).header()


class RequestVerifier:
    """Verifies requests to one node with the public keys that it trusts."""

    def __init__(self, node: str, public_keys: str) -> None:
        """Raise ValueError unless `public_keys` is the text of public keys, one per line."""
        self.node = node
        keys = [_decode(line, PUBLIC_PREFIX, "public") for line in _lines(public_keys)]
        if not 0 < len(keys) <= MAX_PUBLIC_KEYS:
            raise ValueError(f"holds {len(keys)} public keys; write 1 to {MAX_PUBLIC_KEYS}, each on its own line")
        self._keys = {_key_id(key): key for key in keys}

    def knows(self, key_id: str) -> bool:
        return key_id in self._keys

    def verify(self, signature: RequestSignature, method: str, path: str, body: bytes) -> bool:
        """Whether a trusted key signed this request for this node; the node that the header claims does not count."""
        from nacl.exceptions import BadSignatureError
        from nacl.signing import VerifyKey

        key = self._keys.get(signature.key_id)
        if key is None:
            return False
        try:
            VerifyKey(key).verify(_message(self.node, method, path, signature.at, body), signature.signature)
        except BadSignatureError:
            return False
        return True


def generate_keys() -> KeyPair:
    """A new key pair from the random numbers of the system."""
    from nacl.signing import SigningKey

    key = SigningKey.generate()
    return KeyPair(_encode(PRIVATE_PREFIX, bytes(key)), _encode(PUBLIC_PREFIX, bytes(key.verify_key)))


def _message(node: str, method: str, path: str, at: str, body: bytes) -> bytes:
    digest = hashlib.sha256(body).hexdigest()
    fields = (_DOMAIN, quote(node, safe=""), method, quote(path, safe="/"), at, digest)  # none contains a line break
    return "\n".join(fields).encode()


def _key_id(public: bytes) -> str:
    return hashlib.sha256(public).hexdigest()[:16]


def _lines(text: str) -> list[str]:
    """Lines with content; a line that begins with # is a comment."""
    return [line for raw in text.splitlines() if (line := raw.strip()) and not line.startswith("#")]


def _encode(prefix: str, key: bytes) -> str:
    return prefix + base64.b64encode(key).decode()


def _decode(text: str, prefix: str, kind: str) -> bytes:
    """Bytes of a key. The ValueError never quotes the text, which may be a private key in the wrong place."""
    other = PUBLIC_PREFIX if prefix == PRIVATE_PREFIX else PRIVATE_PREFIX
    if text.startswith(other):
        raise ValueError(f"holds the {'public' if kind == 'private' else 'private'} key where the {kind} key belongs")
    try:
        key = base64.b64decode(text.removeprefix(prefix), validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if not text.startswith(prefix) or len(key) != _KEY_BYTES:
        raise ValueError(f"holds no {kind} key; create a pair of keys with: gpuwarden keys")
    return key
