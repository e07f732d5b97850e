"""Actions over HTTP: release a GPU, delete pods, cordon nodes.

With `dry_run: true` the response is the plan and nothing is done. A client may send its `plan` back as `expect`; the
action is then performed only if the plan is unchanged. Users may act on their own workloads, admins on all.
"""

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus
from typing import Protocol, TypeVar

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from monitor.access.principal import Principal, Role
from monitor.actions.plan import Cordon, DeletePods, PodName, ReleaseGpu, Uncordon, UserAction, UserActionOutcome
from monitor.actions.service import PlanChangedError
from monitor.facts.base import Fact
from monitor.web.authorization import check_role, peer_of
from monitor.web.forms import read_body
from monitor.web.responses import decode_body, error_response, json_response, language_of

MAX_BODY_BYTES = 512 * 1024


class ActionsBackend(Protocol):
    """Previews and performs actions. Both raise ValueError or RequestRejectedError; `perform` also PlanChangedError."""

    def preview(self, action: UserAction, principal: Principal, lang: str, /) -> UserActionOutcome: ...

    def perform(
        self, action: UserAction, principal: Principal, lang: str, /, *, expect: str | None = None, peer: str = ""
    ) -> UserActionOutcome: ...


class _ActionRequest(Fact, frozen=True, kw_only=True):
    """Fields of every action."""

    dry_run: bool = False
    expect: str | None = None


class ReleaseGpuRequest(_ActionRequest, frozen=True, kw_only=True):
    """The GPU to release, by index or uuid."""

    node: str
    gpu: str | int


class DeletePodsRequest(_ActionRequest, frozen=True, kw_only=True):
    """The pods to delete. With a uid, a later pod of the same name is not deleted."""

    pods: tuple[PodName, ...]


class NodesRequest(_ActionRequest, frozen=True, kw_only=True):
    """The nodes to cordon or uncordon."""

    nodes: tuple[str, ...]


class PlanChanged(Fact, frozen=True, kw_only=True):
    """Nothing was done, because the plan is not the expected one; `now` is the current plan.

    Without `now`, nothing was done because another replica is the leader.
    """

    error: str
    now: UserActionOutcome | None = None


T = TypeVar("T", bound=_ActionRequest)


def action_routes(actions: ActionsBackend) -> list[Route]:
    """Routes of the actions."""
    routes = _ActionRoutes(actions)
    return [
        Route("/v1/actions/release-gpu", routes.release_gpu, methods=["POST"]),
        Route("/v1/actions/delete-pods", routes.delete_pods, methods=["POST"]),
        Route("/v1/actions/cordon", routes.cordon, methods=["POST"]),
        Route("/v1/actions/uncordon", routes.uncordon, methods=["POST"]),
    ]


class _ActionRoutes:
    """Endpoints. The body is read on the event loop; the work is done on a worker thread."""

    def __init__(self, actions: ActionsBackend) -> None:
        self._actions = actions

    async def release_gpu(self, request: Request) -> Response:
        def action_of(content: ReleaseGpuRequest) -> UserAction:
            return ReleaseGpu(node=content.node, gpu=str(content.gpu))

        return await self._handle(request, ReleaseGpuRequest, action_of)

    async def delete_pods(self, request: Request) -> Response:
        return await self._handle(request, DeletePodsRequest, lambda content: DeletePods(pods=content.pods))

    async def cordon(self, request: Request) -> Response:
        return await self._handle(request, NodesRequest, lambda content: Cordon(nodes=content.nodes))

    async def uncordon(self, request: Request) -> Response:
        return await self._handle(request, NodesRequest, lambda content: Uncordon(nodes=content.nodes))

    async def _handle(self, request: Request, form: type[T], action_of: Callable[[T], UserAction]) -> Response:
        principal = check_role(request, Role.USER)
        body = await read_body(request, MAX_BODY_BYTES)
        return await run_in_threadpool(self._act, request, principal, body, form, action_of)

    def _act(
        self, request: Request, principal: Principal, body: bytes, form: type[T], action_of: Callable[[T], UserAction]
    ) -> Response:
        try:
            lang = language_of(request)
            content = decode_body(body, form)
            action = action_of(content)
            if content.dry_run:
                return json_response(self._actions.preview(action, principal, lang))
            outcome = self._actions.perform(action, principal, lang, expect=content.expect, peer=peer_of(request))
            return json_response(outcome)
        except ValueError as error:
            return error_response(error, HTTPStatus.BAD_REQUEST)
        except PlanChangedError as changed:
            return json_response(PlanChanged(error=str(changed), now=changed.now), HTTPStatus.CONFLICT)
