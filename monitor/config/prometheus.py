"""Where node facts come from in a large cluster: a metrics store that scrapes the agents."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, SecretStr, field_validator, model_validator

from monitor.base.units import quoted
from monitor.cluster.prometheus.client import StoreSettings
from monitor.cluster.prometheus.query import SELECTOR
from monitor.cluster.prometheus.source import PrometheusSettings
from monitor.config.types import AbsolutePath, SecretSection, Span, read_password

EXAMPLE = "http://prometheus.monitoring:9090"


def parse_store_url(url: str) -> str:
    """Given the address of a store, return it. Raise ValueError that says what to write; no password is repeated."""
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        raise ValueError(f"the address cannot be read; write for example {EXAMPLE}") from None
    if parts.password is not None or parts.username is not None:
        raise ValueError("an address holds no credentials; use username and password_file, or token_file")
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(f"{quoted(url)} is not a store's address; write for example {EXAMPLE}")
    if parts.query or parts.fragment or "/api/v1" in parts.path:
        raise ValueError(f"write what comes before /api/v1, for example {EXAMPLE}")
    return url


def parse_selector(selector: str) -> str:
    """Given label matchers, return them without braces. Raise ValueError if they are none."""
    bare = selector.strip().removeprefix("{").removesuffix("}").strip().rstrip(",")
    if bare and not SELECTOR.fullmatch(bare):
        raise ValueError(f'{quoted(selector)} is no selector; write for example job="gpuwarden-agent"')
    return bare


class PrometheusConfig(SecretSection):
    """The store: Prometheus, VictoriaMetrics or Thanos. `selector` is for one that serves several clusters."""

    url: Annotated[str, AfterValidator(parse_store_url)]
    selector: Annotated[str, AfterValidator(parse_selector)] = ""
    interval: Span = 15.0
    limit: Span = 10.0
    username: Annotated[str, Field(min_length=1)] | None = None
    password: SecretStr | None = None
    password_file: AbsolutePath | None = None
    ca_file: AbsolutePath | None = None

    @field_validator("ca_file")
    @classmethod
    def _a_file_that_is_there(cls, path: str | None) -> str | None:
        if path is not None and not Path(path).is_file():
            raise ValueError(f"there is no file {quoted(path)}")
        return path

    @model_validator(mode="after")
    def _one_way_to_say_who_asks(self) -> Self:
        if self.password is not None and self.password_file is not None:
            raise ValueError("give password or password_file, not both")
        if (self.username is None) != (self.password is None and self.password_file is None):
            raise ValueError("give both username and password_file, or neither")
        if self.username is not None and (self.token is not None or self.token_file is not None):
            raise ValueError("give a token, or username and password_file, not both")
        self.read_password()
        return self

    def settings(self) -> PrometheusSettings:
        """Return how the store is asked."""
        store = StoreSettings(
            url=self.url,
            limit=self.limit,
            token=self.read_token,
            username=self.username,
            password=self.read_password,
            ca_file=self.ca_file,
        )
        return PrometheusSettings(store=store, interval=self.interval, selector=self.selector)

    def read_password(self) -> str | None:
        """Return the password. Raise ValueError if its file is gone."""
        return read_password(self.password, self.password_file)
