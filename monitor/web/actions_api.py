"""Acting on the cluster by HTTP: release a card, delete pods, cordon nodes.

With `dry_run: true` nothing is done, and the answer says exactly what would be. Its `plan` may be sent back as
`expect`: then nothing is done if it is not that any more. A user may act on what is their own, an admin on everything.
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
from monitor.actions.plan import Cordon, DeletePods, ActionOutcome, PodName, ReleaseGpu, Uncordon, UserAction
from monitor.actions.service import PlanChangedError
from monitor.facts.base import Fact
from monitor.i18n import LANGUAGES
from monitor.web.authorization import check_role, peer_of
from monitor.web.forms import read_body
from monitor.web.responses import decode_body, json_response

MAX_BODY_BYTES = 512 * 1024


class ActionsBackend(Protocol):
    """Who acts. Both raise ValueError in plain words, or RefusedError; `perform` also ChangedError."""

    def preview(self, wanted: UserAction, person: Principal, lang: str) -> ActionOutcome: ...

    def perform(
        self, wanted: UserAction, person: Principal, lang: str, *, expect: str | None = None, peer: str = ""
    ) -> ActionOutcome: ...


class _ActionRequest(Fact, frozen=True, kw_only=True):
    """What every action may be asked with."""

    dry_run: bool = False
    expect: str | None = None


class ReleaseGpuRequest(_ActionRequest, frozen=True, kw_only=True):
    """Which card is to be released: by its index, or its uuid."""

    node: str
    gpu: str | int


class DeletePodsRequest(_ActionRequest, frozen=True, kw_only=True):
    """Which pods are to be deleted. One that is named with its uid is that pod, and no later one of its name."""

    pods: tuple[PodName, ...]


class NodesRequest(_ActionRequest, frozen=True, kw_only=True):
    """Which nodes are to be cordoned, or uncordoned."""

    nodes: tuple[str, ...]


class PlanChanged(Fact, frozen=True, kw_only=True):
    """What would happen is not what was expected, so nothing was done. `now` is what would happen now.

    Without it, nothing was done because another replica acts.
    """

    error: str
    now: ActionOutcome | None = None


T = TypeVar("T", bound=_ActionRequest)


def action_routes(acts: ActionsBackend) -> list[Route]:
    """Given who acts, return the routes."""
    views = _ActionRoutes(acts)
    return [
        Route("/v1/actions/release-gpu", views.release_gpu, methods=["POST"]),
        Route("/v1/actions/delete-pods", views.delete_pods, methods=["POST"]),
        Route("/v1/actions/cordon", views.cordon, methods=["POST"]),
        Route("/v1/actions/uncordon", views.uncordon, methods=["POST"]),
    ]


class _ActionRoutes:
    """The endpoints. They wait for the body on the loop, and work on other threads."""

    def __init__(self, acts: ActionsBackend) -> None:
        self._acts = acts

    async def release_gpu(self, request: Request) -> Response:
        def read(wish: ReleaseGpuRequest) -> UserAction:
            return ReleaseGpu(node=wish.node, gpu=str(wish.gpu))

        return await self._answer(request, ReleaseGpuRequest, read)

    async def delete_pods(self, request: Request) -> Response:
        return await self._answer(request, DeletePodsRequest, lambda wish: DeletePods(pods=wish.pods))

    async def cordon(self, request: Request) -> Response:
        return await self._answer(request, NodesRequest, lambda wish: Cordon(nodes=wish.nodes))

    async def uncordon(self, request: Request) -> Response:
        return await self._answer(request, NodesRequest, lambda wish: Uncordon(nodes=wish.nodes))

    async def _answer(self, request: Request, form: type[T], read: Callable[[T], UserAction]) -> Response:
        person = check_role(request, Role.USER)
        body = await read_body(request, MAX_BODY_BYTES)
        return await run_in_threadpool(self._act, request, person, body, form, read)

    def _act(
        self, request: Request, person: Principal, body: bytes, form: type[T], read: Callable[[T], UserAction]
    ) -> Response:
        try:
            lang = request.query_params.get("lang", "en")
            if lang not in LANGUAGES:
                raise ValueError("lang is en or zh")
            wish = decode_body(body, form)
            wanted = read(wish)
            if wish.dry_run:
                return json_response(self._acts.preview(wanted, person, lang))
            done = self._acts.perform(wanted, person, lang, expect=wish.expect, peer=peer_of(request))
            return json_response(done)
        except ValueError as error:
            return json_response({"error": str(error)}, HTTPStatus.BAD_REQUEST)
        except PlanChangedError as changed:
            return json_response(PlanChanged(error=str(changed), now=changed.now), HTTPStatus.CONFLICT)
