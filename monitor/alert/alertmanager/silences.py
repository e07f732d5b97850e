"""The silences of an Alertmanager, so that what is silenced there is not told here either."""

from __future__ import annotations

import logging
import threading
from dataclasses import replace
from datetime import datetime

import msgspec

from monitor.alert.matchers import Matcher, Operator
from monitor.alert.receivers.alertmanager import api_url
from monitor.alert.receivers.configured import bearer
from monitor.alert.silences import Silence
from monitor.base.endpoint import Endpoint
from monitor.base.http import RequestError, get

log = logging.getLogger(__name__)
REFRESH_SECONDS = 15.0
_OPERATORS: dict[tuple[bool, bool], Operator] = {
    (True, False): "=", (False, False): "!=", (True, True): "=~", (False, True): "!~",
}  # fmt: skip


class _Matcher(msgspec.Struct):
    name: str
    value: str
    isRegex: bool  # noqa: N815  # theirs
    isEqual: bool = True  # noqa: N815  # theirs; older versions do not send it


class _Status(msgspec.Struct):
    state: str


class _Silence(msgspec.Struct):
    id: str
    status: _Status
    matchers: list[_Matcher]
    startsAt: datetime  # noqa: N815  # theirs
    endsAt: datetime  # noqa: N815  # theirs
    createdBy: str = ""  # noqa: N815  # theirs
    comment: str = ""


def read_silences(body: bytes) -> tuple[Silence, ...]:
    """Given what an Alertmanager says, return the silences that are in force or will be. Raise ValueError.

    One that cannot be understood silences nothing: being told too much is better than too little.
    """
    found = []
    for each in msgspec.json.decode(body, type=list[_Silence]):
        if each.status.state == "expired":
            continue
        try:
            found.append(_silence(each))
        except ValueError as error:
            log.warning("silence %s of Alertmanager is not respected: %s", each.id, error)
    return tuple(found)


def _silence(given: _Silence) -> Silence:
    return Silence(
        id=given.id,
        matchers=tuple(
            Matcher(name=each.name, op=_OPERATORS[each.isEqual, each.isRegex], value=each.value)
            for each in given.matchers
        ),
        starts_at=given.startsAt.timestamp(),
        ends_at=given.endsAt.timestamp(),
        author=given.createdBy,
        comment=given.comment,
    )


class AlertmanagerSilences:
    """Asks between start() and stop(). `silences` are those of the last answer, also while there is none."""

    def __init__(self, way: Endpoint, token: str | None = None, every: float = REFRESH_SECONDS) -> None:
        self._way = replace(way, url=api_url(way.url, "silences"))
        self._headers = bearer(token)
        self._every = every
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._keep_asking, name="alertmanager-silences", daemon=True)
        self.silences: tuple[Silence, ...] = ()
        self.trouble: str | None = None

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """End. A question that is under way is not waited for."""
        self._stopping.set()

    def ask(self) -> None:
        """Ask once. What was last known stays, when there is no answer."""
        try:
            self.silences, trouble = read_silences(get(self._way, self._headers).body), None
        except RequestError as error:
            trouble = str(error)
        except ValueError as error:  # also what msgspec raises
            trouble = f"{self._way.host} answered what is no list of silences: {error}"
        if trouble != self.trouble:
            log.log(
                logging.WARNING if trouble else logging.INFO, "silences of Alertmanager: %s", trouble or "read again"
            )
        self.trouble = trouble

    def _keep_asking(self) -> None:
        while not self._stopping.is_set():
            self.ask()
            self._stopping.wait(self._every)
