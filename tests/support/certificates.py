"""Test certificates: a certificate authority and the certificates it signs, made by openssl."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from tests.support import need


@dataclass(frozen=True)
class Authority:
    """A certificate authority with its own directory."""

    directory: Path

    @property
    def ca_file(self) -> str:
        return str(self.directory / "ca.pem")

    def sign(self, name: str, alternative: str, usage: str | None = None) -> tuple[str, str]:
        """Certificate file and key file for a subject alternative name such as DNS:agent or IP:127.0.0.1.

        `usage` restricts it to serverAuth or clientAuth.
        """
        key, request, certificate = (str(self.directory / f"{name}.{end}") for end in ("key", "csr", "pem"))
        extension = self.directory / f"{name}.ext"
        extended = f"extendedKeyUsage={usage}\n" if usage is not None else ""
        extension.write_text(f"subjectAltName={alternative}\n{extended}")
        _openssl(
            "req",
            "-newkey",
            "ec:" + self._parameters(),
            "-nodes",
            "-subj",
            f"/CN={name}",
            "-keyout",
            key,
            "-out",
            request,
        )
        ca_key = str(self.directory / "ca.key")
        _openssl(
            "x509", "-req", "-in", request, "-CA", self.ca_file, "-CAkey", ca_key, "-CAcreateserial", "-days", "2",
            "-extfile", str(extension), "-out", certificate,
        )  # fmt: skip
        return certificate, key

    def _parameters(self) -> str:
        parameters = self.directory / "ec.pem"
        if not parameters.exists():
            _openssl("ecparam", "-name", "prime256v1", "-out", str(parameters))
        return str(parameters)


def authority(directory: Path) -> Authority:
    """Create a certificate authority."""
    need(shutil.which("openssl") is not None, "openssl")
    directory.mkdir()
    made = Authority(directory)
    _openssl(
        "req", "-x509", "-newkey", "ec:" + made._parameters(), "-nodes", "-subj", "/CN=test", "-days", "2",
        "-keyout", str(directory / "ca.key"), "-out", made.ca_file,
    )  # fmt: skip
    return made


def _openssl(*arguments: str) -> None:
    subprocess.run(["openssl", *arguments], check=True, capture_output=True, timeout=300)
