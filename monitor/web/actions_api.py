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

from monitor.access.principal import Person, Role
from monitor.actions.plan import Cordon, DeletePods, Outcome, PodName, ReleaseGpu, Uncordon, Wanted
from monitor.actions.service import ChangedError
from monitor.facts.base import Fact
from monitor.i18n import LANGUAGES
from monitor.web.authorization import check_role, peer_of
from monitor.web.forms import read_body
from monitor.web.responses import decoded, json_answer

MAX_BODY = 512 * 1024


class ActsAsked(Protocol):
    """Who acts. Both raise ValueError in plain words, or RefusedError; `perform` also ChangedError."""

    def preview(self, wanted: Wanted, person: Person, lang: str) -> Outcome: ...

    def perform(
        self, wanted: Wanted, person: Person, lang: str, *, expect: str | None = None, peer: str = ""
    ) -> Outcome: ...


class _Wish(Fact, frozen=True, kw_only=True):
    """What every action may be asked with."""

    dry_run: bool = False
    expect: str | None = None


class WantedReleaseGpu(_Wish, frozen=True, kw_only=True):
    """Which card is to be released: by its index, or its uuid."""

    node: str
    gpu: str | int


class WantedDeletePods(_Wish, frozen=True, kw_only=True):
    """Which pods are to be deleted. One that is named with its uid is that pod, and no later one of its name."""

    pods: tuple[PodName, ...]


class WantedNodes(_Wish, frozen=True, kw_only=True):
    """Which nodes are to be cordoned, or uncordoned."""

    nodes: tuple[str, ...]


class Changed(Fact, frozen=True, kw_only=True):
    """What would happen is not what was expected, so nothing was done. `now` is what would happen now.

    Without it, nothing was done because another replica acts.
    """

    error: str
    now: Outcome | None = None


T = TypeVar("T", bound=_Wish)


def action_routes(acts: ActsAsked) -> list[Route]:
    """Given who acts, return the routes."""
    views = _Views(acts)
    return [
        Route("/v1/actions/release-gpu", views.release_gpu, methods=["POST"]),
        Route("/v1/actions/delete-pods", views.delete_pods, methods=["POST"]),
        Route("/v1/actions/cordon", views.cordon, methods=["POST"]),
        Route("/v1/actions/uncordon", views.uncordon, methods=["POST"]),
    ]


class _Views:
    """The endpoints. They wait for the body on the loop, and work on other threads."""

    def __init__(self, acts: ActsAsked) -> None:
        self._acts = acts

    async def release_gpu(self, request: Request) -> Response:
        def read(wish: WantedReleaseGpu) -> Wanted:
            return ReleaseGpu(node=wish.node, gpu=str(wish.gpu))

        return await self._answer(request, WantedReleaseGpu, read)

    async def delete_pods(self, request: Request) -> Response:
        return await self._answer(request, WantedDeletePods, lambda wish: DeletePods(pods=wish.pods))

    async def cordon(self, request: Request) -> Response:
        return await self._answer(request, WantedNodes, lambda wish: Cordon(nodes=wish.nodes))

    async def uncordon(self, request: Request) -> Response:
        return await self._answer(request, WantedNodes, lambda wish: Uncordon(nodes=wish.nodes))

    async def _answer(self, request: Request, form: type[T], read: Callable[[T], Wanted]) -> Response:
        person = check_role(request, Role.USER)
        body = await read_body(request, MAX_BODY)
        return await run_in_threadpool(self._act, request, person, body, form, read)

    def _act(
        self, request: Request, person: Person, body: bytes, form: type[T], read: Callable[[T], Wanted]
    ) -> Response:
        try:
            lang = request.query_params.get("lang", "en")
            if lang not in LANGUAGES:
                raise ValueError("lang is en or zh")
            wish = decoded(body, form)
            wanted = read(wish)
            if wish.dry_run:
                return json_answer(self._acts.preview(wanted, person, lang))
            done = self._acts.perform(wanted, person, lang, expect=wish.expect, peer=peer_of(request))
            return json_answer(done)
        except ValueError as error:
            return json_answer({"error": str(error)}, HTTPStatus.BAD_REQUEST)
        except ChangedError as changed:
            return json_answer(Changed(error=str(changed), now=changed.now), HTTPStatus.CONFLICT)
