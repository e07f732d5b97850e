"""Generated requests to the API of a daemon on a simulated cluster: no 500, and responses match the document.

The client is an admin: it deletes pods, cordons nodes, creates and expires silences, all in the simulation.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, seed
from hypothesis import settings as hypothesis_settings
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
MAX_EXAMPLES = 15
ADMIN = {"Authorization": f"Bearer {TOKENS['admin']}"}


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DaemonSite]:
    with daemon_on(tmp_path_factory.mktemp("daemon"), ACCESS) as made:
        made.submit("bert-0", "zhang", 1, "gpu01")
        yield made


@pytest.fixture(scope="module")
def schema(daemon: DaemonSite) -> Any:
    return schemathesis.openapi.from_dict(daemon.client("admin").get("/v1/openapi.json").json)


def _modes(operation: Operation) -> tuple[schemathesis.GenerationMode, ...]:
    """Modes for an operation: without body and query there is no negative case."""
    has_input = operation.body is not None or any(each.where == "query" for each in operation.parameters)
    return MODES if has_input else MODES[:1]


CASES = [(operation, mode) for operation in OPERATIONS for mode in _modes(operation)]


@pytest.mark.parametrize(("operation", "mode"), CASES, ids=[f"{case[0].name}-{case[1].value}" for case in CASES])
def test_no_500(daemon: DaemonSite, schema: Any, operation: Operation, mode: schemathesis.GenerationMode) -> None:
    endpoint = schema[operation.path][operation.method]

    @seed(7)
    @hypothesis_settings(
        max_examples=MAX_EXAMPLES,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=endpoint.as_strategy(generation_mode=mode))
    def send(case: schemathesis.Case[Any]) -> None:
        response = case.call(base_url=daemon.url, headers=ADMIN, timeout=60)
        case.validate_response(response, checks=CHECKS)

    send()


def test_it_is_still_there_and_unharmed(daemon: DaemonSite) -> None:
    assert daemon.client().get("/healthz").status == 200
    assert len(daemon.view()["gpus"]) == 16
    assert "Traceback" not in daemon.log
