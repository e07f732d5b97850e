"""Real registries for tests to probe, and the certificates they need."""

from __future__ import annotations

import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support import free_port, need, wait_until

KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")


class Authority:
    """A certificate authority in a directory of its own."""

    def __init__(self, directory: Path) -> None:
        need(shutil.which("openssl") is not None, "openssl")
        directory.mkdir()
        self._directory = directory
        self.certificate = directory / "ca.pem"
        self._openssl(
            "req", "-x509", *KEY, "-keyout", "ca.key", "-out", "ca.pem", "-days", "2", "-subj", "/CN=test authority"
        )

    def issue(self, name: str, host: str, days: int) -> tuple[Path, Path]:
        """Return a certificate for `host` and its key. With negative `days` it has expired."""
        self._openssl("req", *KEY, "-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj", "/CN=registry")
        (self._directory / "extensions").write_text(f"subjectAltName={host}\n")
        self._openssl(
            *("x509", "-req", "-in", f"{name}.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial"),
            *("-out", f"{name}.pem", "-days", str(days), "-extfile", "extensions"),
        )
        return self._directory / f"{name}.pem", self._directory / f"{name}.key"

    def _openssl(self, *arguments: str) -> None:
        subprocess.run(["openssl", *arguments], cwd=self._directory, check=True, capture_output=True, timeout=300)


@contextmanager
def registry(directory: Path, *, tls: tuple[Path, Path] | None = None, login: bool = False) -> Iterator[int]:
    """Run a real registry on a port of 127.0.0.1, which is yielded."""
    need(shutil.which("docker-registry") is not None, "docker-registry")
    port = free_port()
    directory.mkdir()
    lines = [
        "version: 0.1",
        "log: {level: error, accesslog: {disabled: true}}",
        f"storage: {{filesystem: {{rootdirectory: {directory}/data}}}}",
        f"http: {{addr: '127.0.0.1:{port}'" + (f", tls: {{certificate: {tls[0]}, key: {tls[1]}}}}}" if tls else "}"),
    ]
    if login:
        lines.append("auth: {silly: {realm: test, service: test}}")
    (directory / "config.yml").write_text("\n".join(lines))
    with subprocess.Popen(
        ["docker-registry", "serve", str(directory / "config.yml")],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        try:
            wait_until(lambda: _accepts(port), 10, "the registry listens")
            yield port
        finally:
            process.kill()


def _accepts(port: int) -> bool:
    with socket.socket() as connection:
        return connection.connect_ex(("127.0.0.1", port)) == 0
