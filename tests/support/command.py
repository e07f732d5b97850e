"""The `gpuwarden` command as a real process that is always stopped."""

from __future__ import annotations

import contextlib
import http.client
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from urllib.parse import urlsplit

RUN_LIMIT = 300.0  # seconds for a command that ends by itself, on a machine with fully busy cores
STOP_LIMIT = 120.0  # seconds on a machine with fully busy cores; on an idle one it takes one


def quiet_environment(state: Path, **settings: str) -> dict[str, str]:
    """Environment that ignores this machine's container runtimes and listens on free ports.

    Settings are passed as `AGENT__TOKEN="..."`.
    """
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GPUWARDEN_")}
    ours = {
        "AGENT__LISTEN": "127.0.0.1:0",
        "AGENT__NODE_NAME": "test-node",
        "AGENT__PATHS__STATE": str(state),
        "DAEMON__STATE": str(state),
        "AGENT__PATHS__DOCKER_SOCKET": "/nonexistent/docker.sock",
        "AGENT__PATHS__CRI_SOCKETS": "[]",
        "DAEMON__LISTEN": "127.0.0.1:0",
        "DAEMON__KUBERNETES__ENABLED": "no",
    }
    return kept | {f"GPUWARDEN_{name}": value for name, value in (ours | settings).items()}


def command(*arguments: str) -> list[str]:
    """Command line that runs `gpuwarden` with these arguments."""
    return [str(Path(sys.executable).with_name("gpuwarden")), *arguments]


def run(*arguments: str, environ: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Run the command to completion."""
    line = command(*arguments)
    return subprocess.run(line, env=environ, capture_output=True, text=True, timeout=RUN_LIMIT, check=False)


@contextlib.contextmanager
def running(
    line: list[str], environ: Mapping[str, str], cwd: Path | None = None, stdout: int = subprocess.PIPE
) -> Iterator[subprocess.Popen[str]]:
    """Run a command line alongside the test and kill it at the end if it still runs."""
    process = subprocess.Popen(line, env=environ, cwd=cwd, stdout=stdout, stderr=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


def get(url: str, headers: Mapping[str, str] | None = None) -> tuple[int, dict[str, str], str]:
    """Status, lower-case headers and body of a page."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.netloc, timeout=60)
    try:
        connection.request(
            "GET", f"{parts.path}?{parts.query}" if parts.query else parts.path, headers=dict(headers or {})
        )
        response = connection.getresponse()
        named = {name.lower(): value for name, value in response.getheaders()}
        return response.status, named, response.read().decode()
    finally:
        connection.close()
