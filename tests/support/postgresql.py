"""A real PostgreSQL server for tests, run by the user `postgres` in its own directory."""

from __future__ import annotations

import importlib.util
import os
import pwd
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import pytest

from monitor.probes.postgresql import probe
from monitor.probes.runner import ProbeError, ServiceTarget
from tests.support import free_port, need, wait_until

PROGRAMS = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
SETTINGS = "listen_addresses=127.0.0.1 fsync=off shared_buffers=16MB unix_socket_directories="


def has_client() -> bool:
    return importlib.util.find_spec("psycopg") is not None


class Database:
    """A server in its own directory, run by the user `postgres` because it refuses to run as root."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.port = free_port()
        self._process: subprocess.Popen[bytes] | None = None
        self._run("initdb", "-D", str(directory), "-A", "trust", "-U", "admin", "--no-sync")

    def _run(self, program: str, *arguments: str) -> None:
        command = [str(PROGRAMS[-1] / program), *arguments]
        subprocess.run(command, user="postgres", cwd="/", check=True, capture_output=True, timeout=300)

    def start(self) -> None:
        options = [part for setting in SETTINGS.split() for part in ("-c", setting)]
        command = [str(PROGRAMS[-1] / "postgres"), "-D", str(self._directory), "-p", str(self.port), *options]
        self._process = subprocess.Popen(
            command, user="postgres", cwd="/", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        wait_until(lambda: self.cause() != "refused", 30, "it takes connections")

    def stop(self) -> None:
        if self._process is not None:
            self._process.send_signal(signal.SIGCONT)
            self._process.send_signal(signal.SIGINT)  # fast shutdown
            self._process.wait(60)
            self._process = None

    def freeze(self, number: signal.Signals) -> None:
        assert self._process is not None
        self._process.send_signal(number)

    def target(self, user: str = "admin", **more: Any) -> ServiceTarget:
        url = f"postgresql://{user}@127.0.0.1:{self.port}/postgres"
        return ServiceTarget(name="db", kind="postgresql", url=url, **({"limit": 5.0} | more))

    def cause(self, user: str = "admin", **more: Any) -> str | None:
        """The cause the probe reports, or None."""
        try:
            probe(self.target(user, **more))
        except ProbeError as error:
            return error.cause
        return None

    def execute(self, statement: str) -> Any:
        import psycopg

        writable = "-c default_transaction_read_only=off"
        with psycopg.connect(self.target().url, autocommit=True, options=writable) as connection:
            cursor = connection.execute(statement)
            return cursor.fetchone() if cursor.description else None


@pytest.fixture(scope="module")
def database() -> Iterator[Database]:
    need(bool(PROGRAMS), "postgresql")
    need(has_client(), "psycopg")
    need(os.geteuid() == 0, "root, to become the user postgres")
    directory = Path(mkdtemp(prefix="gpuwarden-pg-"))
    owner = pwd.getpwnam("postgres")
    os.chown(directory, owner.pw_uid, owner.pw_gid)
    made = Database(directory)
    try:
        made.start()
        yield made
    finally:
        made.stop()
        subprocess.run(["rm", "-rf", str(directory)], check=True, timeout=300)
