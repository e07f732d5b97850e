"""Bearer tokens in Authorization headers."""

from __future__ import annotations

import hmac


def has_token(authorization: str, token: bytes) -> bool:
    """Whether an Authorization header carries this bearer token. Compares in constant time."""
    scheme, _, credentials = authorization.partition(" ")
    as_sent = credentials.strip().encode("latin-1", "replace")  # http.server decodes headers as Latin-1
    return hmac.compare_digest(as_sent, token) and scheme.lower() == "bearer"
