"""Settings of the history."""

from __future__ import annotations

from pathlib import Path

import pytest

from monitor.config.file import ConfigError, load
from monitor.history.prometheus import PrometheusSettings


def settings(folder: Path, history: str) -> PrometheusSettings | None:
    file = folder / "gpuwarden.yml"
    file.write_text(f"daemon: {{history: {history}}}")
    prometheus = load(str(file), {}).daemon.history.prometheus
    return None if prometheus is None else prometheus.settings()


def test_without_a_server_the_own_history_is_used(tmp_path: Path) -> None:
    assert settings(tmp_path, "") is None


def test_a_server(tmp_path: Path) -> None:
    found = settings(
        tmp_path, "{prometheus: {url: 'http://u:pw@prom:9090/x', labels: {cluster: a}, token: abc, limit: 7s}}"
    )
    assert found is not None
    assert (found.endpoint.host, found.endpoint.timeout, found.token, dict(found.labels)) == (
        "prom:9090", 7.0, "abc", {"cluster": "a"},
    )  # fmt: skip
    assert "pw" not in repr(found)
    assert "abc" not in repr(found)


WRONG = [
    "{prometheus: {}}",
    "{prometheus: {url: prom}}",
    "{prometheus: {url: 'ftp://prom/'}}",
    "{prometheus: {url: 'http://prom', labels: {'a b': c}}}",
    "{prometheus: {url: 'http://prom', more: 1}}",
]


@pytest.mark.parametrize("history", WRONG)
def test_mistakes_are_named(tmp_path: Path, history: str) -> None:
    with pytest.raises(ConfigError, match=r"daemon\.history"):
        settings(tmp_path, history)
