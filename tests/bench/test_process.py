"""Measurements on loopback do not depend on the environment."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.process import local_session


@pytest.mark.parametrize("verify", [True, False])
def test_settings_of_the_environment_do_not_apply(
    verify: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(tmp_path / "authorities.pem"))
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.example.com:3128")
    settings = local_session(verify=verify).merge_environment_settings("https://127.0.0.1/", {}, None, None, None)
    assert (settings["verify"], dict(settings["proxies"])) == (verify, {})
