"""Client of the Harbor API v2: tag retention and garbage collection, as a dry run or for real.

Harbor's retention rules decide which tags are removed, and garbage collection removes the blobs without references.
Every run is preceded by a dry run. Untagged artifacts stay: they may be pulled by digest.
"""

from __future__ import annotations

import base64
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar
from urllib.parse import urlencode

import msgspec

from monitor.base.endpoint import Endpoint
from monitor.base.globs import matches_any_glob
from monitor.base.http import Reply, RequestError, get, post_json
from monitor.cleanup.policy import RegistryPolicy
from monitor.facts.base import BoundedText

API_PATH = "/api/v2.0"
FINAL_STATUSES = ("Success", "Error", "Stopped")
FIRST_POLL_SECONDS, MAX_POLL_SECONDS = 0.2, 10.0
PAGE_ITEMS = 25
MAX_PAGE_ITEMS = 100
MAX_PAGES = 1000

T = TypeVar("T")


class HarborError(Exception):
    """Harbor is unreachable, refuses or fails. The message contains no secret."""


class _ProjectMetadata(msgspec.Struct):
    retention_id: BoundedText | None = None


class _Project(msgspec.Struct):
    name: BoundedText = ""
    metadata: _ProjectMetadata | None = None


class _RetentionRun(msgspec.Struct):
    id: int = 0
    status: BoundedText = ""
    start_time: BoundedText = ""
    dry_run: bool = False


class _RetentionTask(msgspec.Struct):
    repository: BoundedText = ""
    total: int = 0
    retained: int = 0


class _GcRun(msgspec.Struct):
    id: int = 0
    job_status: BoundedText = ""
    job_parameters: BoundedText = ""
    creation_time: BoundedText = ""


@dataclass(frozen=True)
class RetentionResult:
    """Tags that the retention rules of a project removed, or would remove, out of a total."""

    project: str
    rule: int
    status: str
    total: int
    removed: int


@dataclass(frozen=True)
class GcResult:
    """Bytes and blobs that a garbage collection removed, or would remove; None if this Harbor does not report them."""

    status: str
    freed_bytes: int | None
    blobs: int | None


class Harbor:
    """Client of one Harbor. `stopping` ends all waiting."""

    def __init__(self, policy: RegistryPolicy, stopping: threading.Event, timeout: float = 20.0) -> None:
        """Raise ValueError if the password cannot be read."""
        self._policy = policy
        self._stopping = stopping
        self._timeout = timeout
        self._password = _password(policy.password_file)

    @property
    def url(self) -> str:
        return self._policy.url

    def retention_rules(self) -> tuple[tuple[str, int], ...]:
        """Projects of the policy that have retention rules, with the ids of the rules."""
        rules = []
        for project in self._list_all("/projects", _Project, {"with_detail": "false"}, PAGE_ITEMS):
            rule = project.metadata.retention_id if project.metadata else None
            matches = matches_any_glob(project.name, self._policy.projects)
            if rule and rule.isdecimal() and matches:
                rules.append((project.name, int(rule)))
        return tuple(rules)

    def run_retention(self, project: str, rule: int, *, dry_run: bool, timeout: float) -> RetentionResult:
        """Apply the retention rules of a project, or dry-run them, and wait for the result. Raise HarborError."""
        path = f"/retentions/{rule}/executions"
        run_id = self._start(path, {"dry_run": dry_run})
        status = self._wait(lambda: self._retention_run(rule, run_id).status, timeout)
        return self._retention_result(project, rule, run_id, status)

    def run_gc(self, *, dry_run: bool, timeout: float) -> GcResult:
        """Run a garbage collection, or dry-run it, and wait for the result. Raise HarborError."""
        parameters = {"dry_run": dry_run, "delete_untagged": False}
        run_id = self._start("/system/gc/schedule", {"schedule": {"type": "Manual"}, "parameters": parameters})
        status = self._wait(lambda: self._gc_run(run_id).job_status, timeout)
        return _gc_result(self._gc_run(run_id), status)

    def retention_since(self, project: str, rule: int, at: float) -> RetentionResult | None:
        """Result of the last real retention run since a time."""
        for run in self._list_all(f"/retentions/{rule}/executions", _RetentionRun, {}, MAX_PAGE_ITEMS):
            if not run.dry_run and _epoch(run.start_time) >= at:
                return self._retention_result(project, rule, run.id, run.status)
        return None

    def gc_since(self, at: float) -> GcResult | None:
        """Result of the last real garbage collection since a time."""
        for run in self._get("/system/gc", list[_GcRun], {"page_size": str(PAGE_ITEMS), "sort": "-creation_time"}):
            if not _parameters(run).get("dry_run") and _epoch(run.creation_time) >= at:
                return _gc_result(run, run.job_status)
        return None

    def _retention_run(self, rule: int, run_id: int) -> _RetentionRun:
        """A retention run: Harbor lists them, some time after they start, but does not serve them one by one."""
        runs = self._get(f"/retentions/{rule}/executions", list[_RetentionRun], {"page_size": str(MAX_PAGE_ITEMS)})
        return next((run for run in runs if run.id == run_id), _RetentionRun())

    def _retention_result(self, project: str, rule: int, run_id: int, status: str) -> RetentionResult:
        path = f"/retentions/{rule}/executions/{run_id}/tasks"
        tasks = list(self._list_all(path, _RetentionTask, {}, MAX_PAGE_ITEMS))
        total = sum(task.total for task in tasks)
        return RetentionResult(project, rule, status, total, total - sum(task.retained for task in tasks))

    def _gc_run(self, run_id: int) -> _GcRun:
        return self._get(f"/system/gc/{run_id}", _GcRun)

    def _start(self, path: str, payload: object) -> int:
        """Start a job, and return its id, the last part of its Location."""
        try:
            reply = post_json(self._endpoint(path), payload, self._headers())
        except RequestError as error:
            raise HarborError(str(error)) from None
        location = {name.lower(): value for name, value in reply.headers.items()}.get("location", "")
        run_id = location.rstrip("/").rpartition("/")[2]
        if not run_id.isdecimal():
            raise HarborError(f"{self._endpoint(path).host} started a job without returning its id")
        return int(run_id)

    def _wait(self, status: Callable[[], str], timeout: float) -> str:
        """Wait for the final status of a job. Raise HarborError if it fails or takes too long."""
        deadline, interval = time.monotonic() + timeout, FIRST_POLL_SECONDS
        while (current := status()) not in FINAL_STATUSES:
            if time.monotonic() >= deadline:
                raise HarborError(f"not finished within {timeout:g} s: {current or 'not started'}")
            if self._stopping.wait(interval):
                raise HarborError("the daemon is stopping")
            interval = min(interval * 1.5, MAX_POLL_SECONDS)
        if current != "Success":
            raise HarborError(f"ended with status {current}; see its log in Harbor")
        return current

    def _list_all(self, path: str, form: type[T], query: dict[str, str], size: int) -> Iterator[T]:
        """All elements of a list, page by page."""
        for page in range(1, MAX_PAGES + 1):
            items = self._get(path, list[form], {**query, "page": str(page), "page_size": str(size)})  # type: ignore[valid-type]  # a type that was given
            yield from items
            if len(items) < size:
                return
        raise HarborError(f"{path} has more than {MAX_PAGES} pages")

    def _get(self, path: str, form: type[T], query: dict[str, str] | None = None) -> T:
        endpoint = self._endpoint(path + (f"?{urlencode(query)}" if query else ""))
        try:
            reply: Reply = get(endpoint, self._headers())
            return msgspec.json.decode(reply.body or b"null", type=form)
        except RequestError as error:
            raise HarborError(str(error)) from None
        except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
            raise HarborError(f"unexpected answer from {endpoint.host} to {path}: {error}") from None

    def _endpoint(self, path: str) -> Endpoint:
        policy = self._policy
        return Endpoint(
            url=policy.url.rstrip("/") + API_PATH + path,
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
        why = error.strerror if isinstance(error, OSError) else "not a text file"
        raise ValueError(f"cannot read the registry password from {path}: {why}") from None


def _parameters(run: _GcRun) -> dict[str, Any]:
    try:
        parameters = msgspec.json.decode(run.job_parameters or "{}")
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return {}
    return parameters if isinstance(parameters, dict) else {}


def _gc_result(run: _GcRun, status: str) -> GcResult:
    parameters = _parameters(run)
    freed, blobs = (parameters.get(name) for name in ("freed_space", "purged_blobs"))
    return GcResult(status, freed if isinstance(freed, int) else None, blobs if isinstance(blobs, int) else None)


def _epoch(text: str) -> float:
    try:
        return datetime.fromisoformat(text).timestamp()
    except (ValueError, OverflowError):
        return 0.0
