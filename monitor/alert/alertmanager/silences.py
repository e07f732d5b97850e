"""Silences of an Alertmanager, which apply here as well."""

from __future__ import annotations

import logging
from dataclasses import replace
from datetime import datetime

import msgspec

from monitor.alert.matchers import Matcher, Operator
from monitor.alert.receivers.alertmanager import api_url
from monitor.alert.receivers.common import bearer
from monitor.alert.silences import Silence
from monitor.base.bounded_json import decode_bounded
from monitor.base.endpoint import Endpoint
from monitor.base.http import RequestError, get
from monitor.base.text import MAX_TEXT_CHARS, shortened_prefix
from monitor.base.threads import Periodic
from monitor.facts.base import BoundedText, Identifier

log = logging.getLogger(__name__)
REFRESH_SECONDS = 15.0
_OPERATORS: dict[tuple[bool, bool], Operator] = {
    (True, False): "=", (False, False): "!=", (True, True): "=~", (False, True): "!~",
}  # fmt: skip


class _ApiMatcher(msgspec.Struct):
    name: Identifier
    value: BoundedText
    isRegex: bool  # noqa: N815  # name in Alertmanager's API
    isEqual: bool = True  # noqa: N815  # name in Alertmanager's API; missing in older versions


class _ApiStatus(msgspec.Struct):
    state: Identifier


class _ApiSilence(msgspec.Struct):
    id: Identifier
    status: _ApiStatus
    matchers: list[_ApiMatcher]
    startsAt: datetime  # noqa: N815  # name in Alertmanager's API
    endsAt: datetime  # noqa: N815  # name in Alertmanager's API
    createdBy: BoundedText = ""  # noqa: N815  # name in Alertmanager's API
    comment: BoundedText = ""


_decoder = msgspec.json.Decoder(list[_ApiSilence])


def read_silences(body: bytes) -> tuple[Silence, ...]:
    """Active and future silences from the API's response. Raise ValueError.

    A silence without matchers is ignored, and one with an invalid pattern disabled: too many notifications are better
    than too few.
    """
    silences = []
    for given in decode_bounded(_decoder, body):
        if given.status.state == "expired":
            continue
        try:
            silences.append(_silence(given))
        except ValueError as error:
            log.warning("ignoring Alertmanager silence %s: %s", given.id, error)
    return tuple(silences)


def _silence(given: _ApiSilence) -> Silence:
    return Silence(
        id=given.id,
        matchers=tuple(
            Matcher(name=matcher.name, op=_OPERATORS[matcher.isEqual, matcher.isRegex], value=matcher.value)
            for matcher in map(_complete, given.matchers)
        ),
        starts_at=given.startsAt.timestamp(),
        ends_at=given.endsAt.timestamp(),
        author=given.createdBy,
        comment=given.comment,
    )


def _complete(matcher: _ApiMatcher) -> _ApiMatcher:
    """The matcher. Raise ValueError if its value was cut: it would match something else."""
    if shortened_prefix(matcher.value) is not None:
        raise ValueError(f"the value of {matcher.name} is longer than {MAX_TEXT_CHARS} characters")
    return matcher


class AlertmanagerSilences:
    """Polls an Alertmanager between start() and stop(); `silences` are those of the last successful poll."""

    def __init__(self, endpoint: Endpoint, token: str | None = None, interval: float = REFRESH_SECONDS) -> None:
        self._endpoint = replace(endpoint, url=api_url(endpoint.url, "silences"))
        self._headers = bearer(token)
        self._loop = Periodic("alertmanager-silences", self.refresh, interval)
        self.silences: tuple[Silence, ...] = ()
        self.error: str | None = None

    def start(self) -> None:
        self._loop.start()

    def stop(self) -> None:
        """Stop without waiting for a request in progress."""
        self._loop.stop()

    def refresh(self) -> None:
        """Poll once; a failure keeps the last known silences."""
        try:
            self.silences, error = read_silences(get(self._endpoint, self._headers).body), None
        except RequestError as failure:
            error = str(failure)
        except ValueError as failure:  # includes msgspec errors
            error = f"{self._endpoint.host} did not return a list of silences: {failure}"
        if error != self.error:
            log.log(logging.WARNING if error else logging.INFO, "silences of Alertmanager: %s", error or "read again")
        self.error = error
