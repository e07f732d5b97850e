"""Cleanup by HTTP: what policies would do, what they did, and the few things that a person may ask for.

Everybody who reaches the page may read. Changes are for those whom `monitor.web.authorization` lets.
"""

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus
from typing import Protocol, TypeVar

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from monitor.access.errors import RequestRejectedError
from monitor.cleanup.execute.scanner import ScanProgress
from monitor.cleanup.shown import ShownPlan, ShownRun
from monitor.facts.base import Fact
from monitor.web.authorization import check_access, name_of, peer_of
from monitor.web.forms import read_body
from monitor.web.responses import respond, decode_body, json_response, language_of, limit_of

MAX_BODY = 64 * 1024
RUNS, MOST_RUNS = 50, 1000
LONGEST_NAME = 100
SETTING = "daemon.token"

T = TypeVar("T")


class CleanupBackend(Protocol):
    """What can be asked of cleanup. All raise ValueError, in plain words."""

    def plans(self, policy: str | None, lang: str) -> tuple[ShownPlan, ...]: ...

    def history(self, limit: int, policy: str | None) -> tuple[ShownRun, ...]: ...

    def run(self, policy: str, node: str | None, by: str) -> tuple[str, ...]: ...

    def release(self, node: str, gpu: str, by: str) -> ShownRun: ...

    def restore(self, trash: str, by: str) -> ShownRun: ...

    def begin_scan(self, policy: str) -> ScanProgress: ...

    def scan(self, policy: str) -> ScanProgress: ...

    def stop_scan(self, policy: str) -> bool: ...


class RunRequest(Fact, frozen=True, kw_only=True):
    """Which policy is to run, on one node or wherever it applies. `by` says who wants it."""

    policy: str
    node: str | None = None
    by: str = ""


class ReleaseRequest(Fact, frozen=True, kw_only=True):
    """Which card is to be released: by its index, or its uuid."""

    node: str
    gpu: str | int
    by: str = ""


class RestoreRequest(Fact, frozen=True, kw_only=True):
    """Who wants something back."""

    by: str = ""


class ScanRequest(Fact, frozen=True, kw_only=True):
    """Of which policy the root is to be scanned."""

    policy: str


def cleanup_routes(asked: CleanupBackend, token: str | None) -> list[Route]:
    """Given whom to ask and the token of those who may change something, return the routes."""
    views = _CleanupRoutes(asked, token)
    return [
        Route("/v1/cleanup/plan", views.plan),
        Route("/v1/cleanup/history", views.history),
        Route("/v1/cleanup/scan", views.scan, methods=["GET"]),
        Route("/v1/cleanup/scan", views.begin_scan, methods=["POST"]),
        Route("/v1/cleanup/scan/stop", views.stop_scan, methods=["POST"]),
        Route("/v1/cleanup/run", views.run, methods=["POST"]),
        Route("/v1/cleanup/release", views.release, methods=["POST"]),
        Route("/v1/cleanup/restore/{trash}", views.restore, methods=["POST"]),
    ]


class _CleanupRoutes:
    """The endpoints. Those that change something wait for the body on the loop, and work on other threads."""

    def __init__(self, asked: CleanupBackend, token: str | None) -> None:
        self._asked = asked
        self._token = token

    def plan(self, request: Request) -> Response:
        return respond(lambda: self._asked.plans(request.query_params.get("policy"), language_of(request)))

    def history(self, request: Request) -> Response:
        return respond(
            lambda: self._asked.history(limit_of(request, RUNS, MOST_RUNS), request.query_params.get("policy"))
        )

    def scan(self, request: Request) -> Response:
        return respond(lambda: self._asked.scan(request.query_params.get("policy", "")))

    async def begin_scan(self, request: Request) -> Response:
        return await self._change(
            request, ScanRequest, lambda wanted: self._asked.begin_scan(wanted.policy), HTTPStatus.ACCEPTED
        )

    async def stop_scan(self, request: Request) -> Response:
        return await self._change(request, ScanRequest, lambda wanted: {"stopped": self._asked.stop_scan(wanted.policy)})

    async def run(self, request: Request) -> Response:
        def start(wanted: RunRequest) -> dict[str, tuple[str, ...]]:
            return {"started": self._asked.run(wanted.policy, wanted.node, _who(request, wanted.by))}

        return await self._change(request, RunRequest, start, HTTPStatus.ACCEPTED)

    async def release(self, request: Request) -> Response:
        def release(wanted: ReleaseRequest) -> ShownRun:
            return self._asked.release(wanted.node, str(wanted.gpu), _who(request, wanted.by))

        return await self._change(request, ReleaseRequest, release)

    async def restore(self, request: Request) -> Response:
        def restore(wanted: RestoreRequest) -> ShownRun:
            return self._asked.restore(request.path_params["trash"], _who(request, wanted.by))

        return await self._change(request, RestoreRequest, restore)

    async def _change(
        self, request: Request, form: type[T], change: Callable[[T], object], status: HTTPStatus = HTTPStatus.OK
    ) -> Response:
        try:
            check_access(request, self._token, SETTING)
            body = await read_body(request, MAX_BODY)
        except RequestRejectedError as refused:
            return json_response({"error": str(refused)}, refused.status)
        return await run_in_threadpool(respond, lambda: change(decode_body(body or b"{}", form)), status)


def _who(request: Request, named: str) -> str:
    """Return who wants something, for the record, and from where."""
    plain = "".join(letter for letter in name_of(request, named) if letter.isprintable())[:LONGEST_NAME]
    return f"{plain or '?'}@{peer_of(request) or '?'}"
