"""Follows one kind of object: list once, watch from there, list again when the watch cannot be continued.

One thread. It never ends by itself: whatever happens is written into its SourceFact and tried again, at once after an
ordinary end of a watch, ever more slowly while things fail, and slowly where only an administrator can help.
"""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import msgspec

from monitor.facts.kube import SourceFact
from monitor.kube.client import ApiConnectionError, ApiError, KubeApi, ResponseStream
from monitor.kube.decode.stream import ListPage, MalformedResponseError, WatchEvent, lines
from monitor.kube.health import WatchHealth
from monitor.kube.resources import Resource, served_version
from monitor.kube.store import ObjectChange, ObjectStore

log = logging.getLogger(__name__)

OnChange = Callable[[str, Sequence[ObjectChange[Any]]], None]
FORBIDDEN, ABSENT, GONE = 403, 404, 410
MAX_RETRY_AFTER = 60.0


class WatchTiming(msgspec.Struct, frozen=True, kw_only=True):
    """How long things may take, in seconds, and how often they are tried again."""

    page: int = 500
    request: float = 30.0  # silence within a list
    watch: float = 75.0  # asked of the server: then it ends the watch and we begin the next
    margin: float = 15.0  # silence beyond that: the server is gone without a word
    brief: float = 1.0  # a watch that ends sooner without having said anything was no watch
    initial_backoff: float = 0.25
    max_backoff: float = 10.0
    forbidden_retry: float = 60.0
    absent_retry: float = 180.0


class Reflector:
    """Keeps a store equal to what the API server has of one resource."""

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
        self._broken_at: str | None = None
        self._tries = 0
        self._warned_of_skipping = False
        self._stream: ResponseStream | None = None
        self._stopping = threading.Event()
        self._settled = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"watch-{resource.name}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Ask the thread to end, also if it is waiting for the server's next word."""
        self._stopping.set()
        if (stream := self._stream) is not None:
            stream.abort()

    def join(self, timeout: float) -> bool:
        """Return whether the thread has ended within `timeout` seconds."""
        self._thread.join(timeout)
        return not self._thread.is_alive()

    def wait_settled(self, timeout: float) -> bool:
        """Return whether it is known, within `timeout` seconds, how this fares: synced, forbidden or absent."""
        return self._settled.wait(timeout)

    def fact(self) -> SourceFact:
        """Return how well this resource is followed."""
        return self._health.fact(self._now(), len(self._store), self._store.version)

    def _run(self) -> None:
        while not self._stopping.is_set():
            self._stopping.wait(self._step())

    def _step(self) -> float:
        """List or watch once, and return how long to wait before the next step."""
        try:
            if self._must_list:
                self._list()
                return 0.0
            return self._watch()
        except ApiError as error:
            return self._refused(error)
        except ApiConnectionError as error:
            return self._failed(f"no answer from the API server: {error}")
        except MalformedResponseError as error:
            return self._broken(error)
        except Exception as error:  # a thread that ends would freeze its facts for good
            log.exception("following %s failed", self._resource.name)
            self._must_list = True
            return self._failed(f"{type(error).__name__}: {error}")

    # What goes wrong

    def _refused(self, error: ApiError) -> float:
        verb = "list" if self._must_list else "watch"
        self._must_list = True
        if error.status == GONE:
            return self._pause()  # the server forgot where we were: an ordinary thing, the list will tell the rest
        if error.status == ABSENT and self._resource.optional:
            self._health.absent(self._now())
            self._tell(self._store.replace((), None))
            self._settled.set()
            return self._timing.absent_retry
        if error.status == FORBIDDEN:
            self._failed(self._what_to_grant(verb, error), state="forbidden")
            self._settled.set()
            return self._timing.forbidden_retry
        pause = self._failed(f"{verb} {self._resource.name}: {error}")
        return max(pause, min(error.retry_after or 0.0, MAX_RETRY_AFTER))

    def _what_to_grant(self, verb: str, error: ApiError) -> str:
        resource = self._resource
        return (
            f"may not {verb} {resource.name}: a ClusterRole has to grant get, list and watch on resource "
            f'"{resource.plural}" of API group "{resource.group}" ({error.message})'
        )

    def _broken(self, error: MalformedResponseError) -> float:
        """Begin again where it was whole; if that is where it broke before, with a list, which is past it."""
        reached = self._store.resource_version
        self._must_list = self._must_list or self._broken_at == reached
        self._broken_at = reached
        return self._failed(f"the API server sent something odd: {error}")

    def _failed(self, message: str, state: str | None = None) -> float:
        if self._health.source.last_error != message and not self._stopping.is_set():
            log.warning("%s: %s", self._resource.name, message)
        self._health.failed(message, state)
        return self._pause()

    def _pause(self) -> float:
        """Return how long to wait: twice as long as last time, up to a limit, and not all at the same moment."""
        timing, self._tries = self._timing, self._tries + 1
        longest = min(timing.max_backoff, timing.initial_backoff * 2.0 ** min(self._tries - 1, 20))
        return longest * random.uniform(0.5, 1.0)  # noqa: S311  # no secret

    # Listing

    def _list(self) -> None:
        if self._resource.optional:
            self._path = self._find_path()
        pages = self._pages_of_one_version()
        version = pages[-1].resource_version
        if version is None:
            raise MalformedResponseError("a list without a resource version")
        changes = self._store.replace([item for page in pages for item in page.items], version)
        self._must_list = False
        self._health.listed(sum(page.skipped for page in pages))
        self._health.synced(self._now())
        self._settled.set()
        self._warn_of_skipping(next((page.problem for page in pages if page.problem), None))
        self._tell(changes)

    def _find_path(self) -> str:
        resource = self._resource
        try:
            group = self._get(resource.group_path, {})
        except ApiError as error:
            if error.status != FORBIDDEN:
                raise
            return resource.path(resource.versions[0])  # who may not look around may still be let in
        return resource.path(served_version(resource, group))

    def _pages_of_one_version(self) -> list[ListPage[Any]]:
        """Return a whole list. One that expires between two pages is begun again; the third time, all in one page."""
        for _ in range(2):
            try:
                return list(self._pages(self._timing.page))
            except ApiError as error:
                if error.status != GONE:
                    raise
        return list(self._pages(0))

    def _pages(self, limit: int) -> Iterator[ListPage[Any]]:
        query = {"limit": str(limit)} if limit else {}
        while True:
            page = self._resource.kind.page(self._get(self._path, query))
            yield page
            if page.continue_ is None:
                return
            query["continue"] = page.continue_

    def _get(self, path: str, query: dict[str, str]) -> bytes:
        with self._open(path, query, self._timing.request, listing=True) as stream:
            return stream.read()

    # Watching

    def _watch(self) -> float:
        timing, began, spoke = self._timing, time.monotonic(), False
        seconds = timing.watch * random.uniform(0.8, 1.2)  # noqa: S311  # so that not all watches end together
        query = {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": self._store.resource_version or "",
            "timeoutSeconds": str(max(1, round(seconds))),
        }
        with self._open(self._path, query, seconds + timing.margin, listing=False) as stream:
            self._health.watching()
            self._health.synced(self._now())
            try:
                for line in lines(stream.chunks()):
                    self._take(self._resource.kind.line(line))
                    spoke = True
            except ApiConnectionError as error:  # the next watch begins where this one broke off
                log.debug("%s: the watch broke off: %s", self._resource.name, error)
        if not spoke and time.monotonic() - began < timing.brief:
            return self._failed("the watch ended as soon as it had begun")
        return 0.0

    def _take(self, event: WatchEvent[Any]) -> None:
        """Take in one line. Raise ApiError if it is the server's refusal to go on."""
        if event.type == "ERROR":
            raise _refusal(event)
        if event.type == "BOOKMARK":
            self._store.note(event.resource_version)
        elif event.type in ("ADDED", "MODIFIED", "DELETED"):
            self._warn_of_skipping(event.problem)
            self._health.changed(self._now(), skipped=int(event.problem is not None))
            change = self._store.apply(event)
            if change is not None:
                self._tell([change])
        else:
            raise MalformedResponseError(f"an event of type {event.type!r}")
        self._tries = 0
        self._health.synced(self._now())

    # Common to both

    @contextmanager
    def _open(
        self, path: str, query: dict[str, str], read_seconds: float, *, listing: bool
    ) -> Iterator[ResponseStream]:
        stream = self._api.open(path, query, self._resource.accept(listing=listing), read_seconds)
        self._stream = stream
        try:
            if self._stopping.is_set():  # stop() may have come before there was anything to abort
                raise ApiConnectionError("stopping")
            yield stream
        finally:
            self._stream = None
            stream.close()

    def _tell(self, changes: Sequence[ObjectChange[Any]]) -> None:
        if self._on_change is None or not changes:
            return
        try:
            self._on_change(self._resource.name, changes)
        except Exception:  # whoever listens must not stop us from hearing
            log.exception("%s: a listener failed", self._resource.name)

    def _warn_of_skipping(self, problem: str | None) -> None:
        if problem and not self._warned_of_skipping:
            self._warned_of_skipping = True
            log.warning("%s: skipping what is not understood: %s", self._resource.name, problem)


def _refusal(event: WatchEvent[Any]) -> Exception:
    if event.status is None:
        return MalformedResponseError("an error without a status")
    gone = event.status.reason in ("Expired", "Gone")
    return ApiError(event.status.code or (GONE if gone else 500), event.status.reason, event.status.message)
