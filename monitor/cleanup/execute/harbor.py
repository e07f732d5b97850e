"""Harbor's own cleaning, by its API v2: what its retention rules and garbage collection would remove, and do remove.

Which tags go is decided by the retention rules that are written in Harbor, and which blobs go by what no tag needs any
more. A dry run is asked for first, always. Artifacts without a tag stay: somebody may pull them by digest.
"""

from __future__ import annotations

import base64
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from fnmatch import fnmatchcase
from typing import Any, TypeVar
from urllib.parse import urlencode

import msgspec

from monitor.base.endpoint import Endpoint
from monitor.base.http import Reply, RequestError, get, post_json
from monitor.cleanup.policy import RegistryPolicy

API = "/api/v2.0"
ENDED = ("Success", "Error", "Stopped")
FIRST_LOOK, SLOWEST_LOOK = 0.2, 10.0
PAGE = 25  # what one answer holds is limited
MANY = 100
MOST_PAGES = 1000

T = TypeVar("T")


class HarborError(Exception):
    """Harbor cannot be asked, refuses, or fails. The text holds no secret."""


class _Metadata(msgspec.Struct):
    retention_id: str | None = None


class _Project(msgspec.Struct):
    name: str = ""
    metadata: _Metadata | None = None


class _Execution(msgspec.Struct):
    id: int = 0
    status: str = ""
    start_time: str = ""
    dry_run: bool = False


class _Task(msgspec.Struct):
    repository: str = ""
    total: int = 0
    retained: int = 0


class _Collection(msgspec.Struct):
    id: int = 0
    job_status: str = ""
    job_parameters: str = ""
    creation_time: str = ""


@dataclass(frozen=True)
class Retention:
    """What the retention rules of a project did, or would do: of so many tags, so many are removed."""

    project: str
    rule: int
    status: str
    total: int
    removed: int


@dataclass(frozen=True)
class Collection:
    """What a garbage collection did, or would do. None where this Harbor does not tell."""

    status: str
    freed_bytes: int | None
    blobs: int | None


class Harbor:
    """Asks one Harbor. `stopping` ends all waiting."""

    def __init__(self, policy: RegistryPolicy, stopping: threading.Event, timeout: float = 20.0) -> None:
        """Raise ValueError if the password cannot be read."""
        self._policy = policy
        self._stopping = stopping
        self._timeout = timeout
        self._password = _password(policy.password_file)

    @property
    def url(self) -> str:
        """The address of this Harbor."""
        return self._policy.url

    def rules(self) -> tuple[tuple[str, int], ...]:
        """Return the projects that the policy is about and that have retention rules, with the id of these."""
        found = []
        for project in self._all("/projects", _Project, {"with_detail": "false"}, PAGE):
            own = project.metadata.retention_id if project.metadata else None
            if own and own.isdecimal() and any(fnmatchcase(project.name, each) for each in self._policy.projects):
                found.append((project.name, int(own)))
        return tuple(found)

    def retention(self, project: str, rule: int, *, dry_run: bool, limit: float) -> Retention:
        """Have the rules of a project applied, or tried, and return what came of it. Raise HarborError."""
        path = f"/retentions/{rule}/executions"
        own = self._begin(path, {"dry_run": dry_run})
        status = self._wait(lambda: self._execution(rule, own).status, limit)
        return self._result(project, rule, own, status)

    def collection(self, *, dry_run: bool, limit: float) -> Collection:
        """Have the garbage collected, or counted, and return what came of it. Raise HarborError."""
        wanted = {"dry_run": dry_run, "delete_untagged": False}
        own = self._begin("/system/gc/schedule", {"schedule": {"type": "Manual"}, "parameters": wanted})
        status = self._wait(lambda: self._collection(own).job_status, limit)
        return _collected(self._collection(own), status)

    def retention_since(self, project: str, rule: int, at: float) -> Retention | None:
        """Return what came of the last real application of a project's rules after a time; None if there was none."""
        for each in self._all(f"/retentions/{rule}/executions", _Execution, {}, MANY):
            if not each.dry_run and _epoch(each.start_time) >= at:
                return self._result(project, rule, each.id, each.status)
        return None

    def collection_since(self, at: float) -> Collection | None:
        """Return what came of the last real collection after a time; None if there was none."""
        for each in self._get("/system/gc", list[_Collection], {"page_size": str(PAGE), "sort": "-creation_time"}):
            if not _parameters(each).get("dry_run") and _epoch(each.creation_time) >= at:
                return _collected(each, each.job_status)
        return None

    def _execution(self, rule: int, own: int) -> _Execution:
        """Return an execution: they are listed, not served one by one, and listed some time after they were begun."""
        listed = self._get(f"/retentions/{rule}/executions", list[_Execution], {"page_size": str(MANY)})
        return next((each for each in listed if each.id == own), _Execution())

    def _result(self, project: str, rule: int, own: int, status: str) -> Retention:
        tasks = list(self._all(f"/retentions/{rule}/executions/{own}/tasks", _Task, {}, MANY))
        total = sum(task.total for task in tasks)
        return Retention(project, rule, status, total, total - sum(task.retained for task in tasks))

    def _collection(self, own: int) -> _Collection:
        return self._get(f"/system/gc/{own}", _Collection)

    def _begin(self, path: str, payload: object) -> int:
        """Have something begun, and return its id, which is the end of where it says that it is."""
        try:
            reply = post_json(self._way(path), payload, self._headers())
        except RequestError as error:
            raise HarborError(str(error)) from None
        where = {name.lower(): value for name, value in reply.headers.items()}.get("location", "")
        own = where.rstrip("/").rpartition("/")[2]
        if not own.isdecimal():
            raise HarborError(f"{self._way(path).host} has begun, and does not say under which number")
        return int(own)

    def _wait(self, status: Any, limit: float) -> str:
        """Return how something ended. Raise HarborError if it has not, or not well."""
        deadline, rest = time.monotonic() + limit, FIRST_LOOK
        while (found := status()) not in ENDED:
            if time.monotonic() >= deadline:
                raise HarborError(f"it was not over within {limit:g} s: {found or 'not begun'}")
            if self._stopping.wait(rest):
                raise HarborError("the daemon is being stopped")
            rest = min(rest * 1.5, SLOWEST_LOOK)
        if found != "Success":
            raise HarborError(f"it ended as {found}; its log in Harbor says why")
        return str(found)

    def _all(self, path: str, form: type[T], query: dict[str, str], size: int) -> Iterator[T]:
        """Yield everything of a list, page by page."""
        for page in range(1, MOST_PAGES + 1):
            items = self._get(path, list[form], {**query, "page": str(page), "page_size": str(size)})  # type: ignore[valid-type]  # a type that was given
            yield from items
            if len(items) < size:
                return
        raise HarborError(f"{path} has more than {MOST_PAGES} pages")

    def _get(self, path: str, form: type[T], query: dict[str, str] | None = None) -> T:
        way = self._way(path + (f"?{urlencode(query)}" if query else ""))
        try:
            reply: Reply = get(way, self._headers())
            return msgspec.json.decode(reply.body or b"null", type=form)
        except RequestError as error:
            raise HarborError(str(error)) from None
        except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
            raise HarborError(f"{way.host} answered {path} with something else: {error}") from None

    def _way(self, path: str) -> Endpoint:
        policy = self._policy
        return Endpoint(
            url=policy.url.rstrip("/") + API + path,
            timeout=self._timeout,
            ca_file=policy.ca_file,
            verify_tls=policy.verify_tls,
            secrets=(self._password,) if self._password else (),
        )

    def _headers(self) -> dict[str, str]:
        if self._policy.username is None:
            return {}
        login = base64.b64encode(f"{self._policy.username}:{self._password}".encode()).decode()
        return {"Authorization": f"Basic {login}"}


def _password(path: str | None) -> str:
    if path is None:
        return ""
    try:
        with open(path, encoding="utf-8") as file:
            return file.read().strip()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it holds no text"
        raise ValueError(f"the password of the registry cannot be read from {path}: {why}") from None


def _parameters(raw: _Collection) -> dict[str, Any]:
    try:
        found = msgspec.json.decode(raw.job_parameters or "{}")
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _collected(raw: _Collection, status: str) -> Collection:
    known = _parameters(raw)
    figures = [known.get(name) for name in ("freed_space", "purged_blobs")]
    freed, blobs = (each if isinstance(each, int) else None for each in figures)
    return Collection(status, freed, blobs)


def _epoch(text: str) -> float:
    try:
        return datetime.fromisoformat(text).timestamp()
    except (ValueError, OverflowError):
        return 0.0
