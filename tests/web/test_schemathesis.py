"""Whatever is sent to the API of a real daemon on a simulated cluster: no 500, and answers as its document says.

It acts as an admin: pods are deleted, nodes cordoned, silences made and ended, all of it in the simulation.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, seed
from hypothesis import settings as how
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from monitor.web.openapi_table import OPERATIONS, Operation
from tests.web.cluster import ACCESS, TOKENS, DaemonSite, daemon_on

CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
MODES = (schemathesis.GenerationMode.POSITIVE, schemathesis.GenerationMode.NEGATIVE)
EXAMPLES = 15
ADMIN = {"Authorization": f"Bearer {TOKENS['admin']}"}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DaemonSite]:
    with daemon_on(tmp_path_factory.mktemp("world"), ACCESS) as made:
        made.submit("bert-0", "zhang", 1, "gpu01")
        yield made


@pytest.fixture(scope="module")
def schema(world: DaemonSite) -> Any:
    return schemathesis.openapi.from_dict(world.client("admin").get("/v1/openapi.json").json)


def _ways(operation: Operation) -> tuple[schemathesis.GenerationMode, ...]:
    """Return in which ways an operation can be asked for: where nothing is sent, nothing can be wrong with it."""
    sent = operation.body is not None or any(each.where == "query" for each in operation.parameters)
    return MODES if sent else MODES[:1]


WAYS = [(operation, mode) for operation in OPERATIONS for mode in _ways(operation)]


@pytest.mark.parametrize(("operation", "mode"), WAYS, ids=[f"{way[0].name}-{way[1].value}" for way in WAYS])
def test_no_500(world: DaemonSite, schema: Any, operation: Operation, mode: schemathesis.GenerationMode) -> None:
    asked = schema[operation.path][operation.method]

    @seed(7)
    @how(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=asked.as_strategy(generation_mode=mode))
    def send(case: schemathesis.Case[Any]) -> None:
        response = case.call(base_url=world.url, headers=ADMIN, timeout=20)
        case.validate_response(response, checks=CHECKS)

    send()


def test_it_is_still_there_and_unharmed(world: DaemonSite) -> None:
    assert world.client().get("/healthz").status == 200
    assert len(world.view()["gpus"]) == 16
    assert "Traceback" not in world.log
