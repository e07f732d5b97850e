"""Password hashes: scrypt, written as `scrypt$N$r$p$salt$hash`."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import secrets
import threading
from dataclasses import dataclass, field

# 32 MiB and a few tenths of a second per attempt.
SCRYPT_COST_BITS, SCRYPT_BLOCK_FACTOR, SCRYPT_LANE_COUNT = 15, 8, 3
SALT_BYTES, HASH_BYTES = 16, 32
MAX_MEMORY_BYTES = 128 << 20
MAX_PASSWORD_CHARS = 1024
_CONCURRENT_HASHES = threading.BoundedSemaphore(2)  # bounds the memory that login attempts can use


@dataclass(frozen=True)
class PasswordHash:
    """A hash and its scrypt parameters."""

    n: int
    r: int
    p: int
    salt: bytes = field(repr=False)
    digest: bytes = field(repr=False)

    def __str__(self) -> str:
        salt, digest = (base64.b64encode(part).decode() for part in (self.salt, self.digest))
        return f"scrypt${self.n}${self.r}${self.p}${salt}${digest}"


def hash_password(password: str, cost_bits: int = SCRYPT_COST_BITS) -> PasswordHash:
    """Hash with a new salt. Raise ValueError if the password is too long."""
    salt = secrets.token_bytes(SALT_BYTES)
    n, r, p = 1 << cost_bits, SCRYPT_BLOCK_FACTOR, SCRYPT_LANE_COUNT
    return PasswordHash(n, r, p, salt, _digest(password, n, r, p, salt))


def parse_hash(text: str) -> PasswordHash:
    """Parse a written hash. Raise ValueError, without the text in the message, if it is invalid."""
    parts = text.split("$")
    if len(parts) != 6 or parts[0] != "scrypt" or not all(part.isdecimal() and len(part) < 9 for part in parts[1:4]):
        raise ValueError("not a password hash; create one with gpuwarden hash-password")
    n, r, p = (int(part) for part in parts[1:4])
    if n < 2 or n & (n - 1) or not (0 < r <= 64 and 0 < p <= 16) or 128 * n * r > MAX_MEMORY_BYTES:
        raise ValueError("invalid or too expensive password hash; create one with gpuwarden hash-password")
    try:
        salt, digest = (base64.b64decode(part, validate=True) for part in parts[4:])
    except (binascii.Error, ValueError):
        raise ValueError("invalid password hash; create one with gpuwarden hash-password") from None
    if len(salt) < SALT_BYTES or len(digest) != HASH_BYTES:
        raise ValueError("truncated password hash; create one with gpuwarden hash-password")
    return PasswordHash(n, r, p, salt, digest)


def verify_password(password: str, expected: PasswordHash | None) -> bool:
    """Whether a password matches a hash. Without a hash the answer is no, after the same computation."""
    if len(password) > MAX_PASSWORD_CHARS:
        return False
    against = expected or _DUMMY_HASH
    with _CONCURRENT_HASHES:
        digest = _digest(password, against.n, against.r, against.p, against.salt)
    return hmac.compare_digest(digest, against.digest) and expected is not None


def _digest(password: str, n: int, r: int, p: int, salt: bytes) -> bytes:
    if len(password) > MAX_PASSWORD_CHARS:
        raise ValueError(f"a password has at most {MAX_PASSWORD_CHARS} characters")
    secret = password.encode("utf-8", "surrogatepass")
    return hashlib.scrypt(secret, salt=salt, n=n, r=r, p=p, maxmem=MAX_MEMORY_BYTES + (8 << 20), dklen=HASH_BYTES)


_DUMMY_HASH = PasswordHash(
    1 << SCRYPT_COST_BITS, SCRYPT_BLOCK_FACTOR, SCRYPT_LANE_COUNT, bytes(SALT_BYTES), bytes(HASH_BYTES)
)
