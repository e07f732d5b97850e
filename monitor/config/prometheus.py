"""Settings of the metrics store that scrapes the agents, as the source of node facts in a large cluster."""

from __future__ import annotations

import os.path
from typing import Annotated

from pydantic import AfterValidator, SecretStr

from monitor.base.units import quoted
from monitor.cluster.prometheus.client import StoreSettings
from monitor.cluster.prometheus.query import SELECTOR
from monitor.cluster.prometheus.source import PrometheusSettings
from monitor.config.derive import build
from monitor.config.types import (
    AbsolutePath,
    NonEmpty,
    SecretSection,
    Span,
    check_with,
    require,
    split_url,
)

EXAMPLE = "http://prometheus.monitoring:9090"


def _check_url(url: str) -> None:
    parts = split_url(url, f"write for example {EXAMPLE}")
    if parts.password is not None or parts.username is not None:
        raise ValueError("an address holds no credentials; use username and password_file, or token_file")
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(f"{quoted(url)} is not a store's address; write for example {EXAMPLE}")
    if parts.query or parts.fragment or "/api/v1" in parts.path:
        raise ValueError(f"write what comes before /api/v1, for example {EXAMPLE}")


def _parse_selector(selector: str) -> str:
    """Label matchers without braces."""
    bare = selector.strip().removeprefix("{").removesuffix("}").strip().rstrip(",")
    if bare and not SELECTOR.fullmatch(bare):
        raise ValueError(f'{quoted(selector)} is no selector; write for example job="gpuwarden-agent"')
    return bare


class PrometheusConfig(SecretSection):
    """The store: Prometheus, VictoriaMetrics or Thanos. `selector` is for a store that serves several clusters."""

    url: Annotated[str, check_with(_check_url)]
    selector: Annotated[str, AfterValidator(_parse_selector)] = ""
    interval: Span = 15.0
    limit: Span = 10.0
    username: NonEmpty | None = None
    password: SecretStr | None = None
    password_file: AbsolutePath | None = None
    ca_file: Annotated[AbsolutePath, require(os.path.isfile, "there is no file {}")] | None = None

    def check(self) -> None:
        self.read_password()
        if (self.username is None) != (self.password is None and self.password_file is None):
            raise ValueError("give both username and password_file, or neither")
        if self.username is not None and (self.token is not None or self.token_file is not None):
            raise ValueError("give a token, or username and password_file, not both")

    def settings(self) -> PrometheusSettings:
        """Settings of the source. Credentials are read again for each query."""
        store = build(StoreSettings, self, token=self.read_token, password=self.read_password)
        return build(PrometheusSettings, self, store=store)

    def read_password(self) -> str | None:
        """Password, inline or from its file. Raise ValueError if the file is unreadable."""
        return self.read_secret("password", allow_empty=True)
