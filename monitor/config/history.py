"""Settings of the history that charts show.

daemon:
  history: {prometheus: {url: "http://prometheus:9090"}}
"""

from __future__ import annotations

import re

from pydantic import Field

from monitor.base.endpoint import Endpoint
from monitor.base.units import quoted
from monitor.config.receivers import Secret, check_http_url
from monitor.config.types import AbsolutePath, SecretSection, Section, Span
from monitor.history.prometheus import PrometheusSettings

_LABEL = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")


class PrometheusConfig(SecretSection):
    """A server with the query API of Prometheus. `labels` select the series of this cluster on it."""

    url: Secret
    labels: dict[str, str] = Field(default_factory=dict)
    ca_file: AbsolutePath | None = None
    verify_tls: bool = True
    limit: Span = 3.0

    def check(self) -> None:
        check_http_url(self.url.get_secret_value())
        for name in self.labels:
            if not _LABEL.fullmatch(name):
                raise ValueError(f"{quoted(name)} is not the name of a label; write for example cluster")

    def settings(self) -> PrometheusSettings:
        """Settings of the reader. Raise ValueError if the token file is unreadable."""
        endpoint = Endpoint(
            self.url.get_secret_value(), timeout=self.limit, ca_file=self.ca_file, verify_tls=self.verify_tls
        )
        return PrometheusSettings(endpoint, self.read_token(), self.labels)


class HistoryConfig(Section):
    """Where charts read from: the daemon's own history, or a server that has more of it."""

    prometheus: PrometheusConfig | None = None
