"""The daemon's metrics for Prometheus, readable with the role viewer."""

from __future__ import annotations

from collections.abc import Callable

from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from monitor.web.middleware import METRICS
from monitor.web.responses import NO_STORE


def metrics_routes(render: Callable[[], bytes]) -> list[Route]:
    """Route of the metrics."""

    def metrics(_request: Request) -> Response:
        return Response(render(), headers=NO_STORE, media_type=CONTENT_TYPE_PLAIN_0_0_4)

    return [Route(METRICS, metrics)]
