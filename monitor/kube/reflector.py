"""Reflector: lists one resource, watches it from there, and lists again when the watch cannot be resumed.

Every failure is recorded in the SourceFact and retried: immediately after a regular end of a watch, with exponential
backoff after failures, and slowly if only an administrator can help.
"""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from http import HTTPStatus
from typing import Any

import msgspec

from monitor.base.threads import Periodic
from monitor.facts.kube import SourceFact
from monitor.kube.client import (
    MAX_BODY_BYTES,
    MAX_LIST_BYTES,
    ApiBodyTooLargeError,
    ApiConnectionError,
    ApiError,
    KubeApi,
    ResponseStream,
)
from monitor.kube.decode.stream import ListPage, MalformedResponseError, WatchEvent, lines
from monitor.kube.health import WatchHealth
from monitor.kube.resources import Resource, served_version
from monitor.kube.store import ObjectChange, ObjectStore

log = logging.getLogger(__name__)

OnChange = Callable[[str, Sequence[ObjectChange[Any]]], None]
MAX_RETRY_AFTER_SECONDS = 60.0


class WatchTiming(msgspec.Struct, frozen=True, kw_only=True):
    """Timeouts and retry intervals in seconds, and the page size of lists."""

    page_size: int = 500
    list_timeout: float = 30.0  # until a page begins, and between two pieces of it
    page_timeout: float = 180.0  # for a whole page
    watch_duration: float = 75.0  # timeoutSeconds of a watch: the server ends it, and the next one starts
    watch_margin: float = 15.0  # without data beyond that, the server is gone
    min_watch: float = 1.0  # a watch that ends sooner without any event has failed
    initial_backoff: float = 0.25
    max_backoff: float = 10.0
    forbidden_retry: float = 60.0
    absent_retry: float = 180.0


class Reflector:
    """Keeps a store equal to one resource of the API server."""

    def __init__(
        self,
        api: KubeApi,
        resource: Resource,
        store: ObjectStore[Any],
        *,
        on_change: OnChange | None = None,
        timing: WatchTiming | None = None,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._api = api
        self._resource = resource
        self._store = store
        self._on_change = on_change
        self._timing = timing or WatchTiming()
        self._now = now
        self._health = WatchHealth(resource.name, resource.without)
        self._path = resource.path(resource.versions[0])
        self._must_list = True
        self._page_size = self._timing.page_size
        self._malformed_at: str | None = None
        self._failures_in_row = 0
        self._warned_skipped = False
        self._stream: ResponseStream | None = None
        self._settled = threading.Event()
        self._loop = Periodic(f"watch-{resource.name}", self._step, 0.0)

    def start(self) -> None:
        self._loop.start()

    def stop(self) -> None:
        """Ask the thread to end, and abort the response it is reading."""
        self._loop.stop()
        if (stream := self._stream) is not None:
            stream.abort()

    def join(self, timeout: float) -> None:
        """Wait up to `timeout` seconds for the thread to end."""
        self._loop.stop(timeout)

    def wait_settled(self, timeout: float) -> bool:
        """Whether the resource is synced, forbidden or absent within `timeout` seconds."""
        return self._settled.wait(timeout)

    def fact(self) -> SourceFact:
        return self._health.fact(self._now(), len(self._store), self._store.version)

    def _step(self) -> float:
        """List or watch once; return the pause before the next step."""
        try:
            if self._must_list:
                self._list()
                return 0.0
            return self._watch()
        except ApiError as error:
            return self._rejected(error)
        except ApiBodyTooLargeError as error:
            return self._use_smaller_pages(error)
        except ApiConnectionError as error:
            return self._failed(f"no response from the API server: {error}")
        except MalformedResponseError as error:
            return self._malformed(error)
        except Exception as error:  # the loop must go on, or its facts would never change again
            log.exception("watching %s failed", self._resource.name)
            self._must_list = True
            return self._failed(f"{type(error).__name__}: {error}")

    # Failures

    def _rejected(self, error: ApiError) -> float:
        verb = "list" if self._must_list else "watch"
        self._must_list = True
        if error.status == HTTPStatus.GONE:
            return self._backoff()  # the version expired, which is normal: list again
        if error.status == HTTPStatus.NOT_FOUND and self._resource.optional:
            self._health.absent(self._now())
            self._notify(self._store.replace((), None))
            self._settled.set()
            return self._timing.absent_retry
        if error.status == HTTPStatus.FORBIDDEN:
            self._failed(self._missing_grant(verb, error), state="forbidden")
            self._settled.set()
            return self._timing.forbidden_retry
        pause = self._failed(f"{verb} {self._resource.name}: {error}")
        return max(pause, min(error.retry_after or 0.0, MAX_RETRY_AFTER_SECONDS))

    def _missing_grant(self, verb: str, error: ApiError) -> str:
        resource = self._resource
        return (
            f"may not {verb} {resource.name}: grant get, list and watch in a ClusterRole on resource "
            f'"{resource.plural}" of API group "{resource.group}" ({error.message})'
        )

    def _malformed(self, error: MalformedResponseError) -> float:
        """Resume from the last good version; if it was malformed there before, list to get past it."""
        reached = self._store.resource_version
        self._must_list = self._must_list or self._malformed_at == reached
        self._malformed_at = reached
        return self._failed(f"malformed response from the API server: {error}")

    def _failed(self, message: str, state: str | None = None) -> float:
        if self._health.source.last_error != message and not self._loop.stopping:
            log.warning("%s: %s", self._resource.name, message)
        self._health.failed(message, state)
        return self._backoff()

    def _backoff(self) -> float:
        """Exponential backoff with jitter."""
        timing, self._failures_in_row = self._timing, self._failures_in_row + 1
        longest = min(timing.max_backoff, timing.initial_backoff * 2.0 ** min(self._failures_in_row - 1, 20))
        return longest * random.uniform(0.5, 1.0)  # noqa: S311  # not a secret

    # Listing

    def _list(self) -> None:
        if self._resource.optional:
            self._path = self._served_path()
        pages = self._list_all()
        version = pages[-1].resource_version
        if version is None:
            raise MalformedResponseError("list without a resource version")
        changes = self._store.replace([item for page in pages for item in page.items], version)
        self._must_list = False
        self._health.listed(sum(page.skipped for page in pages))
        self._health.synced(self._now())
        self._warn_skipped(next((page.problem for page in pages if page.problem), None))
        self._notify(changes)
        self._settled.set()  # after the listener: it knows what is listed once the resource has settled

    def _served_path(self) -> str:
        resource = self._resource
        try:
            group = self._get(resource.group_path, {})
        except ApiError as error:
            if error.status != HTTPStatus.FORBIDDEN:
                raise
            return resource.path(resource.versions[0])  # discovery may be forbidden while listing is not
        return resource.path(served_version(resource, group))

    def _list_all(self) -> list[ListPage[Any]]:
        """All pages of a list. If it expires between pages, start again; the third time, as one page."""
        for _ in range(2):
            try:
                return list(self._pages(self._page_size))
            except ApiError as error:
                if error.status != HTTPStatus.GONE:
                    raise
        return list(self._pages(0))

    def _use_smaller_pages(self, error: ApiBodyTooLargeError) -> float:
        """After a page with too many bytes, list again with half as many objects each."""
        if self._page_size == 1:
            return self._failed(f"malformed response from the API server: one object: {error}")
        self._page_size = max(1, self._page_size // 2)
        return self._backoff()

    def _pages(self, limit: int) -> Iterator[ListPage[Any]]:
        query = {"limit": str(limit)} if limit else {}
        while True:
            page = self._resource.kind.page(self._get(self._path, query))
            yield page
            if page.continue_ is None:
                return
            query["continue"] = page.continue_

    def _get(self, path: str, query: dict[str, str]) -> bytes:
        with self._open(path, query, self._timing.list_timeout, listing=True) as stream:
            max_bytes = MAX_BODY_BYTES if "limit" in query else MAX_LIST_BYTES
            return stream.read(self._timing.page_timeout, max_bytes)

    # Watching

    def _watch(self) -> float:
        timing, started, received = self._timing, time.monotonic(), False
        seconds = timing.watch_duration * random.uniform(0.8, 1.2)  # noqa: S311  # watches must not all end together
        query = {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": self._store.resource_version or "",
            "timeoutSeconds": str(max(1, round(seconds))),
        }
        with self._open(self._path, query, seconds + timing.watch_margin, listing=False) as stream:
            self._health.watching()
            self._health.synced(self._now())
            try:
                for line in lines(stream.chunks()):
                    self._apply(self._resource.kind.line(line))
                    received = True
            except ApiConnectionError as error:  # the next watch resumes here
                log.debug("%s: watch interrupted: %s", self._resource.name, error)
        if not received and time.monotonic() - started < timing.min_watch:
            return self._failed("the watch ended immediately without an event")
        return 0.0

    def _apply(self, event: WatchEvent[Any]) -> None:
        """Apply one watch event. Raise ApiError if the server ends the watch with an error."""
        if event.type == "ERROR":
            raise _error_of(event)
        if event.type == "BOOKMARK":
            self._store.bookmark(event.resource_version)
        elif event.type in ("ADDED", "MODIFIED", "DELETED"):
            self._warn_skipped(event.problem)
            self._health.changed(self._now(), skipped=int(event.problem is not None))
            change = self._store.apply(event)
            if change is not None:
                self._notify([change])
        else:
            raise MalformedResponseError(f"unknown event type {event.type!r}")
        self._failures_in_row = 0
        self._health.synced(self._now())

    # Shared

    @contextmanager
    def _open(
        self, path: str, query: dict[str, str], read_seconds: float, *, listing: bool
    ) -> Iterator[ResponseStream]:
        stream = self._api.open(path, query, self._resource.accept(listing=listing), read_seconds)
        self._stream = stream
        try:
            if self._loop.stopping:  # stop() may have run before there was a stream to abort
                raise ApiConnectionError("stopping")
            yield stream
        finally:
            self._stream = None
            stream.close()

    def _notify(self, changes: Sequence[ObjectChange[Any]]) -> None:
        if self._on_change is None or not changes:
            return
        try:
            self._on_change(self._resource.name, changes)
        except Exception:  # a failing listener must not stop the watch
            log.exception("%s: a listener failed", self._resource.name)

    def _warn_skipped(self, problem: str | None) -> None:
        if problem and not self._warned_skipped:
            self._warned_skipped = True
            log.warning("%s: skipping objects that cannot be decoded: %s", self._resource.name, problem)


def _error_of(event: WatchEvent[Any]) -> Exception:
    if event.status is None:
        return MalformedResponseError("ERROR event without a status")
    gone = event.status.reason in ("Expired", "Gone")
    return ApiError(
        event.status.code or (HTTPStatus.GONE if gone else HTTPStatus.INTERNAL_SERVER_ERROR),
        event.status.reason,
        event.status.message,
    )
