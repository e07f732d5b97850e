"""Settings of Prometheus as the source of node facts; rejected configurations are in tests/fixtures/config."""

from __future__ import annotations

from pathlib import Path

import pytest

from monitor.config.file import load
from monitor.config.prometheus import PrometheusConfig
from monitor.daemon.build import state_limits

SECRET = "s3cret-t0ken"
URL = "http://prometheus.lab:9090/select/0/prometheus"


def prometheus(folder: Path, text: str) -> PrometheusConfig:
    file = folder / "gpuwarden.yml"
    file.write_text(f"daemon:\n  prometheus:\n    url: {URL}\n{text}", encoding="utf-8")
    found = load(str(file), {}).daemon.prometheus
    assert found is not None
    return found


def test_without_it_the_agents_are_asked() -> None:
    assert load(None, {}).daemon.prometheus is None


def test_the_defaults(tmp_path: Path) -> None:
    settings = prometheus(tmp_path, "").settings()
    assert (settings.interval, settings.store.limit, settings.selector) == (15.0, 10.0, "")
    assert (settings.store.url, settings.store.token(), settings.store.username) == (URL, None, None)


@pytest.mark.parametrize(
    ("written", "means"),
    [
        ('job="agents"', 'job="agents"'),
        ('{job="agents", cluster=~"a|b"}', 'job="agents", cluster=~"a|b"'),
        ('job!="x",', 'job!="x"'),
        ('team="say \\"hi\\" {now}"', 'team="say \\"hi\\" {now}"'),
        ("", ""),
    ],
)
def test_a_selector(tmp_path: Path, written: str, means: str) -> None:
    assert prometheus(tmp_path, f"    selector: '{written}'").settings().selector == means


def test_who_asks_is_kept_to_itself_and_read_when_it_is_needed(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text(f"{SECRET}\n")
    by_token = prometheus(tmp_path, f"    token_file: {secret}")
    by_name = prometheus(tmp_path, f"    username: reader\n    password_file: {secret}")
    assert by_token.settings().store.token() == SECRET
    assert by_name.settings().store.password() == SECRET
    for config in (by_token, by_name):
        assert SECRET not in f"{config!r} {config.settings()!r} {config.model_dump_json()}"
    secret.write_text("renewed\n")
    assert by_token.settings().store.token() == "renewed"
    secret.unlink()
    with pytest.raises(ValueError, match="cannot read"):
        by_name.settings().store.password()


@pytest.mark.parametrize(("interval", "stale_after"), [("10s", 60.0), ("30s", 120.0)])
def test_a_store_that_is_asked_rarely_makes_nothing_stale(tmp_path: Path, interval: str, stale_after: float) -> None:
    file = tmp_path / "gpuwarden.yml"
    file.write_text(
        f"daemon:\n  kubernetes: {{enabled: no}}\n  prometheus: {{url: {URL}, interval: {interval}}}\n",
        encoding="utf-8",
    )
    assert state_limits(load(str(file), {})).stale_after == stale_after
