"""Passwords: only their scrypt hashes are ever written down, as `scrypt$N$r$p$salt$hash`."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import secrets
import threading
from dataclasses import dataclass, field

LOG_N, BLOCK, LANES = 15, 8, 3  # 32 MiB and some tenths of a second for each guess
SALT_BYTES, HASH_BYTES = 16, 32
MOST_MEMORY = 128 << 20
LONGEST = 1024  # characters
_AT_ONCE = threading.BoundedSemaphore(2)  # guesses must not eat the memory


@dataclass(frozen=True)
class PasswordHash:
    """A hash and how it was made."""

    n: int
    r: int
    p: int
    salt: bytes = field(repr=False)
    digest: bytes = field(repr=False)

    def __str__(self) -> str:
        salt, digest = (base64.b64encode(each).decode() for each in (self.salt, self.digest))
        return f"scrypt${self.n}${self.r}${self.p}${salt}${digest}"


def hash_password(password: str, log_n: int = LOG_N) -> PasswordHash:
    """Given a password, return its hash with a new salt. Raise ValueError if it is too long."""
    salt = secrets.token_bytes(SALT_BYTES)
    n = 1 << log_n
    return PasswordHash(n, BLOCK, LANES, salt, _digest(password, n, BLOCK, LANES, salt))


def parse_hash(text: str) -> PasswordHash:
    """Given a written hash, return it. Raise ValueError, without the hash in it, if it is none."""
    parts = text.split("$")
    if len(parts) != 6 or parts[0] != "scrypt" or not all(part.isdecimal() and len(part) < 9 for part in parts[1:4]):
        raise ValueError("this is no password hash; gpuwarden hash-password makes one")
    n, r, p = (int(part) for part in parts[1:4])
    if n < 2 or n & (n - 1) or not (0 < r <= 64 and 0 < p <= 16) or 128 * n * r > MOST_MEMORY:
        raise ValueError("this password hash would take too much, or is broken; gpuwarden hash-password makes one")
    try:
        salt, digest = (base64.b64decode(part, validate=True) for part in parts[4:])
    except (binascii.Error, ValueError):
        raise ValueError("this password hash is broken; gpuwarden hash-password makes one") from None
    if len(salt) < SALT_BYTES or len(digest) != HASH_BYTES:
        raise ValueError("this password hash was cut; gpuwarden hash-password makes one")
    return PasswordHash(n, r, p, salt, digest)


def is_right(password: str, known: PasswordHash | None) -> bool:
    """Return whether a password is the one that was hashed. Where there is none, that takes as long, and is not."""
    against = known or _NOBODY
    if len(password) > LONGEST:
        return False
    with _AT_ONCE:
        digest = _digest(password, against.n, against.r, against.p, against.salt)
    return hmac.compare_digest(digest, against.digest) and known is not None


def _digest(password: str, n: int, r: int, p: int, salt: bytes) -> bytes:
    if len(password) > LONGEST:
        raise ValueError(f"a password has at most {LONGEST} characters")
    secret = password.encode("utf-8", "surrogatepass")
    return hashlib.scrypt(secret, salt=salt, n=n, r=r, p=p, maxmem=MOST_MEMORY + (8 << 20), dklen=HASH_BYTES)


_NOBODY = PasswordHash(1 << LOG_N, BLOCK, LANES, bytes(SALT_BYTES), bytes(HASH_BYTES))
