"""Watch health of one resource, as a fact."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from monitor.facts.kube import SourceFact


class WatchHealth:
    """Written by the reflector's thread, read by any thread: `source` is replaced as a whole."""

    def __init__(self, resource: str, without: str | None) -> None:
        self.source = SourceFact(resource=resource, state="starting", without=without)

    def synced(self, now: float) -> None:
        """The API server answered, and the store is up to date."""
        since = self.source.synced_since
        self._set(
            state="synced",
            contact_at=now,
            synced_since=now if since is None else since,
            stale_since=None,
            last_error=None,
        )

    def failed(self, message: str, state: str | None = None) -> None:
        """A request failed. Known objects become stale as of the last contact."""
        source = self.source
        was_known = source.synced_since is not None or source.stale_since is not None
        stale_since = source.contact_at if source.stale_since is None else source.stale_since
        self._set(
            state=state or ("stale" if was_known else "failing"),
            synced_since=None,
            stale_since=stale_since if was_known else None,
            last_error=message,
            failures=source.failures + 1,
        )

    def absent(self, now: float) -> None:
        """The API server does not serve this resource."""
        self._set(state="absent", contact_at=now, synced_since=None, stale_since=None, last_error=None)

    def listed(self, skipped: int) -> None:
        self._set(lists=self.source.lists + 1, skipped=self.source.skipped + skipped)

    def watching(self) -> None:
        self._set(watches=self.source.watches + 1)

    def changed(self, now: float, skipped: int) -> None:
        source = self.source
        self._set(last_event_at=now, events=source.events + 1, skipped=source.skipped + skipped)

    def fact(self, now: float, objects: int, version: int) -> SourceFact:
        """The fact as of `now`."""
        source = self.source
        return replace(
            source,
            objects=objects,
            version=version,
            lag_seconds=None if source.contact_at is None else max(0.0, now - source.contact_at),
            without=None if source.state == "synced" else source.without,
        )

    def _set(self, **changes: Any) -> None:
        self.source = replace(self.source, **changes)
