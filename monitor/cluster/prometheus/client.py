"""Questions to a metrics store that speaks Prometheus' HTTP API: bounded in time and size, errors in plain words.

No proxy is asked and no redirect is followed: the credentials are for this address alone. Every answer is for one
moment, so that what several questions bring fits together.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from dataclasses import dataclass, field
from http import HTTPStatus
from urllib.parse import urlencode, urlsplit

import msgspec

from monitor.base.bounded_json import decode_bounded
from monitor.base.endpoint import Endpoint
from monitor.base.http import exchange
from monitor.base.text import shorten
from monitor.cluster.prometheus.query import QuerySeries
from monitor.probes.tcp import network_error

MAX_BODY_BYTES = 256 * 1024 * 1024
MAX_ERROR_CHARS = 300
NO_PROMETHEUS = "is no Prometheus: {path} gives {what}; daemon.prometheus.url is what comes before /api/v1"


class StoreError(Exception):
    """The store's answer could not be had, or not be used. `too_much`: a smaller question may be answered."""

    def __init__(self, text: str, too_much: bool = False) -> None:
        super().__init__(text)
        self.too_much = too_much


@dataclass(frozen=True)
class StoreSettings:
    """Which store, and who asks. The token is read anew for each question: those of Kubernetes change by the hour."""

    url: str
    limit: float
    token: Callable[[], str | None] = field(default=lambda: None, repr=False)
    username: str | None = None
    password: Callable[[], str | None] = field(default=lambda: None, repr=False)
    ca_file: str | None = None


@dataclass(frozen=True)
class StoreAnswer:
    """What the store says. `missing` is what it could not ask itself, where it stands for several."""

    series: list[QuerySeries]
    missing: str | None = None


class _QueryData(msgspec.Struct):
    result: list[QuerySeries]


class _QueryBody(msgspec.Struct, rename={"is_partial": "isPartial"}):
    status: str
    data: _QueryData | None = None
    error: str = ""
    warnings: list[str] | None = None
    is_partial: bool = False


class MetricStore:
    """Asks one store. Used from one thread."""

    def __init__(self, settings: StoreSettings) -> None:
        self._settings = settings
        self._url = f"{settings.url.rstrip('/')}/api/v1/query"
        self.name = urlsplit(settings.url).netloc
        self._decoder = msgspec.json.Decoder(_QueryBody)

    def query(self, expression: str, at: float) -> StoreAnswer:
        """Given a question and a moment, return the series. Raise StoreError."""
        # VictoriaMetrics would answer for half a minute ago; `nocache` says that we mean the moment that we name.
        form = {"query": expression, "time": f"{at:.3f}", "nocache": "1", "timeout": f"{self._settings.limit:g}s"}
        try:
            status, body = self._post(form)
        except OSError as error:  # what requests raises is one, and so is a CA file that is missing
            raise StoreError(self._says(self._unreachable(error))) from error
        answer = self._understood(status, body)
        if answer.is_partial:
            # Series of one agent may be on several of its nodes: what is there may be half of a snapshot.
            raise StoreError(self._says("answers in part: one of its storage nodes does not answer"))
        missing = shorten("; ".join(answer.warnings), MAX_ERROR_CHARS) if answer.warnings else None
        return StoreAnswer(answer.data.result if answer.data else [], missing)

    def _post(self, form: dict[str, str]) -> tuple[int, bytes]:
        endpoint = Endpoint(self._url, timeout=self._settings.limit, ca_file=self._settings.ca_file)
        headers = {"Content-Type": "application/x-www-form-urlencoded", **self._headers()}
        reply = exchange("POST", endpoint, urlencode(form).encode(), headers, max_bytes=MAX_BODY_BYTES + 1, direct=True)
        if len(reply.body) > MAX_BODY_BYTES:
            raise StoreError(self._says(f"answers with more than {MAX_BODY_BYTES >> 20} MiB"), too_much=True)
        return reply.status, reply.body

    def _headers(self) -> dict[str, str]:
        try:
            token = self._settings.token()
        except ValueError as error:  # the token's file is gone
            raise StoreError(f"daemon.prometheus.token_file: {error}") from None
        if token:
            return {"Authorization": f"Bearer {token}"}
        if self._settings.username is None:
            return {}
        try:
            password = self._settings.password() or ""
        except ValueError as error:
            raise StoreError(f"daemon.prometheus.password_file: {error}") from None
        login = f"{self._settings.username}:{password}".encode()
        return {"Authorization": f"Basic {base64.b64encode(login).decode()}"}

    def _understood(self, status: int, body: bytes) -> _QueryBody:
        """Decoded body of an answer. Raise StoreError if it is an error or does not come from Prometheus."""
        try:
            answer = decode_bounded(self._decoder, body)
        except (msgspec.MsgspecError, UnicodeError, RecursionError):
            raise StoreError(self._says(_without_json(status))) from None
        if status == HTTPStatus.OK and answer.status == "success":
            return answer
        said = shorten(" ".join(answer.error.split()), MAX_ERROR_CHARS)
        if status == HTTPStatus.BAD_REQUEST:
            raise StoreError(
                self._says(f"does not understand the question, is daemon.prometheus.selector right? {said}")
            )
        if status == HTTPStatus.UNPROCESSABLE_ENTITY:
            raise StoreError(self._says(f"cannot answer, it may be too much at once: {said}"), too_much=True)
        raise StoreError(self._says(_refused(status) or f"answers {status}: {said}"))

    def _unreachable(self, error: OSError) -> str:
        found = network_error(error)
        if found.cause == "timeout":
            return f"does not answer within {self._settings.limit:g} s"
        return f"cannot be reached: {found}"

    def _says(self, what: str) -> str:
        return shorten(f"{self.name} {what}", MAX_ERROR_CHARS)


def _without_json(status: int) -> str:
    return _refused(status) or NO_PROMETHEUS.format(
        path="/api/v1/query", what="another kind of answer" if status == HTTPStatus.OK else f"status {status}"
    )


def _refused(status: int) -> str | None:
    if status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
        return f"wants other credentials (status {status}): daemon.prometheus.token_file, or username and password_file"
    if status in (HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE):
        return f"is overloaded or not ready (status {status})"
    return None
