"""Authentication of requests with the local token, as commands on the daemon's machine do it."""

from __future__ import annotations

from pathlib import Path

from monitor.access.local_token import read_local_token

LOCAL_TOKEN = "local-0123456789abcdef0123"  # of applications in the process of a test
AS_LOCAL = {"Authorization": f"Bearer {LOCAL_TOKEN}"}


def local_headers(state: Path) -> dict[str, str]:
    """Headers of a request to a daemon with this state directory."""
    return {"Authorization": f"Bearer {read_local_token(str(state))}"}
