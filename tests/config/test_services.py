from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from monitor.config.file import ConfigError, load
from monitor.config.root import Config
from monitor.config.services import ServiceConfig

SECRET = "s3cret"


def services(*given: object) -> tuple[ServiceConfig, ...]:
    return Config.model_validate({"daemon": {"services": list(given)}}).daemon.services


@pytest.mark.parametrize(
    ("given", "name", "kind"),
    [
        ("https://portal.lab/login", "portal.lab", "http"),
        ("http://10.0.0.1:8080", "10.0.0.1:8080", "http"),
        ("tcp://10.0.0.1:22", "10.0.0.1:22", "tcp"),
        ("postgresql://admin@db.lab:5432/jobs", "db.lab:5432", "postgresql"),
        ({"url": "https://harbor.lab", "kind": "harbor"}, "harbor.lab", "harbor"),
        ({"url": "https://harbor.lab", "kind": "registry", "name": "images"}, "images", "registry"),
    ],
)
def test_what_a_service_is_follows_from_its_address(given: object, name: str, kind: str) -> None:
    target = services(given)[0].target()
    assert (target.name, target.kind) == (name, kind)


def test_everything_that_is_given_reaches_the_probe() -> None:
    given: dict[str, Any] = {
        "name": "portal", "url": "https://portal.lab", "interval": "30s", "limit": "3s", "status": [200, 401],
        "contains": "welcome", "ca_file": "/etc/ca.pem", "verify_tls": True,
    }  # fmt: skip
    target = services(given)[0].target()
    assert (target.interval, target.limit, target.status) == (30.0, 3.0, (200, 401))
    assert (target.contains, target.ca_file, target.shown) == ("welcome", "/etc/ca.pem", "https://portal.lab")


def test_a_password_inline_or_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_text(f"{SECRET} with spaces\n")
    url = "postgresql://admin@db.lab/jobs"
    assert services({"url": url, "password": SECRET})[0].target().password == SECRET
    assert services({"url": url, "password_file": str(file)})[0].target().password == f"{SECRET} with spaces"
    with pytest.raises(ValueError, match="cannot read"):
        services({"url": url, "password_file": str(tmp_path / "none")})[0].target()


def test_a_password_is_in_no_representation_and_in_no_error(tmp_path: Path) -> None:
    url = "postgresql://admin@db.lab/jobs"
    given = services({"url": url, "password": SECRET})
    assert SECRET not in repr(given) + str(given[0].model_dump()) + repr(given[0].target())
    file = tmp_path / "gpuwarden.yml"
    file.write_text(f"daemon: {{services: [{{url: '{url}', password: {SECRET}, password_file: /x, wrte: 1}}]}}\n")
    with pytest.raises(ConfigError) as refused:
        load(str(file), {})
    assert SECRET not in str(refused.value)
