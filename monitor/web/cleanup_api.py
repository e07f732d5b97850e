"""Cleanup over HTTP: plans, history, scans, and runs on demand.

Reading needs the role viewer; `monitor.web.authorization` authorizes changes.
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
from monitor.facts.base import Fact
from monitor.present.cleanup import ShownPlan, ShownRun
from monitor.web.authorization import TOKEN_SETTING, check_access, name_of, peer_of
from monitor.web.forms import read_body
from monitor.web.responses import decode_body, error_response, language_of, limit_of, respond

MAX_BODY_BYTES = 64 * 1024
DEFAULT_ROWS, MAX_ROWS = 50, 1000
MAX_NAME_CHARS = 100

T = TypeVar("T")


class CleanupBackend(Protocol):
    """Queries about cleanup, and the operations on it. All raise ValueError with a message for the user."""

    def plans(self, policy: str | None, lang: str, /) -> tuple[ShownPlan, ...]: ...

    def policies_on(self, node: str, kind: str, /) -> tuple[str, ...]: ...

    def history(self, limit: int, policy: str | None, /) -> tuple[ShownRun, ...]: ...

    def run(self, policy: str, node: str | None, by: str, /) -> tuple[str, ...]: ...

    def release(self, node: str, gpu: str, by: str, /) -> ShownRun: ...

    def restore(self, trash: str, by: str, /) -> ShownRun: ...

    def begin_scan(self, policy: str, /) -> ScanProgress: ...

    def scan(self, policy: str, /) -> ScanProgress: ...

    def stop_scan(self, policy: str, /) -> bool: ...


class RunRequest(Fact, frozen=True, kw_only=True):
    """The policy to run, on one node or on all it applies to. `by` names the requester."""

    policy: str
    node: str | None = None
    by: str = ""


class ReleaseRequest(Fact, frozen=True, kw_only=True):
    """The GPU to release, by index or uuid."""

    node: str
    gpu: str | int
    by: str = ""


class RestoreRequest(Fact, frozen=True, kw_only=True):
    """The requester of a restore."""

    by: str = ""


class ScanRequest(Fact, frozen=True, kw_only=True):
    """The policy whose root to scan."""

    policy: str


def cleanup_routes(cleanup: CleanupBackend, token: str | None) -> list[Route]:
    """Routes of cleanup; `token` authorizes changes."""
    routes = _CleanupRoutes(cleanup, token)
    return [
        Route("/v1/cleanup/plan", routes.plan),
        Route("/v1/cleanup/history", routes.history),
        Route("/v1/cleanup/scan", routes.scan, methods=["GET"]),
        Route("/v1/cleanup/scan", routes.begin_scan, methods=["POST"]),
        Route("/v1/cleanup/scan/stop", routes.stop_scan, methods=["POST"]),
        Route("/v1/cleanup/run", routes.run, methods=["POST"]),
        Route("/v1/cleanup/release", routes.release, methods=["POST"]),
        Route("/v1/cleanup/restore/{trash}", routes.restore, methods=["POST"]),
    ]


class _CleanupRoutes:
    """Endpoints. Bodies are read on the event loop; the work is done on worker threads."""

    def __init__(self, cleanup: CleanupBackend, token: str | None) -> None:
        self._cleanup = cleanup
        self._token = token

    def plan(self, request: Request) -> Response:
        return respond(lambda: self._cleanup.plans(request.query_params.get("policy"), language_of(request)))

    def history(self, request: Request) -> Response:
        return respond(
            lambda: self._cleanup.history(limit_of(request, DEFAULT_ROWS, MAX_ROWS), request.query_params.get("policy"))
        )

    def scan(self, request: Request) -> Response:
        return respond(lambda: self._cleanup.scan(request.query_params.get("policy", "")))

    async def begin_scan(self, request: Request) -> Response:
        return await self._change(
            request, ScanRequest, lambda content: self._cleanup.begin_scan(content.policy), HTTPStatus.ACCEPTED
        )

    async def stop_scan(self, request: Request) -> Response:
        return await self._change(
            request, ScanRequest, lambda content: {"stopped": self._cleanup.stop_scan(content.policy)}
        )

    async def run(self, request: Request) -> Response:
        def start(content: RunRequest) -> dict[str, tuple[str, ...]]:
            return {"started": self._cleanup.run(content.policy, content.node, _requester(request, content.by))}

        return await self._change(request, RunRequest, start, HTTPStatus.ACCEPTED)

    async def release(self, request: Request) -> Response:
        def release(content: ReleaseRequest) -> ShownRun:
            return self._cleanup.release(content.node, str(content.gpu), _requester(request, content.by))

        return await self._change(request, ReleaseRequest, release)

    async def restore(self, request: Request) -> Response:
        def restore(content: RestoreRequest) -> ShownRun:
            return self._cleanup.restore(request.path_params["trash"], _requester(request, content.by))

        return await self._change(request, RestoreRequest, restore)

    async def _change(
        self, request: Request, form: type[T], change: Callable[[T], object], status: HTTPStatus = HTTPStatus.OK
    ) -> Response:
        try:
            check_access(request, self._token, TOKEN_SETTING)
            body = await read_body(request, MAX_BODY_BYTES)
        except RequestRejectedError as error:
            return error_response(error, error.status)
        return await run_in_threadpool(respond, lambda: change(decode_body(body or b"{}", form)), status)


def _requester(request: Request, given: str) -> str:
    """Name and address of the requester, for the journal."""
    name = "".join(char for char in name_of(request, given) if char.isprintable())[:MAX_NAME_CHARS]
    return f"{name or '?'}@{peer_of(request) or '?'}"
