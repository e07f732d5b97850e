"""End-to-end tests: in the lab, or read-only ones in any cluster.

`pytest tests/e2e` uses its own lab, or the one LAB_DIR names. With `KUBECONFIG=... pytest tests/e2e --read-only`, or
with GPUWARDEN_E2E_KUBECONFIG set, only tests marked `read_only` run, in that cluster.
"""

from __future__ import annotations

import os
import ssl
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.lab.errors import LabError
from tests.lab.lab import Lab
from tests.lab.variants import chosen
from tests.support import need

HERE = Path(__file__).parent


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--read-only", action="store_true", help="end-to-end: run only tests that read, in the cluster of KUBECONFIG"
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "lab(variant): an end-to-end test of what only this variant of the lab has")
    config.addinivalue_line("markers", "read_only: an end-to-end test that changes nothing and fits any cluster")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark tests of this directory as end-to-end; in a user's cluster, deselect those that are not read-only."""
    here = [item for item in items if item.path.is_relative_to(HERE)]
    for item in here:
        item.add_marker(pytest.mark.e2e)
    _deselect(config, items, [item for item in here if not fits(item, chosen().name)])
    if is_read_only(config):
        _deselect(config, items, [item for item in here if item.get_closest_marker("read_only") is None])


def pytest_sessionstart() -> None:
    ignore_dropped_connections()


def ignore_dropped_connections() -> None:
    """Drop warnings about TLS connections that nothing closed, whenever garbage is collected.

    Tests kill API servers, and the client library drops such connections: a run whose tests all passed would fail.
    """
    report = sys.unraisablehook
    sys.unraisablehook = lambda problem: None if isinstance(problem.object, ssl.SSLSocket) else report(problem)


def _deselect(config: pytest.Config, items: list[pytest.Item], unwanted: list[pytest.Item]) -> None:
    config.hook.pytest_deselected(items=unwanted)
    items[:] = [item for item in items if item not in unwanted]


def fits(item: pytest.Item, variant: str) -> bool:
    """Whether a test runs in this variant of the lab: its mark `lab` names one, or it has none."""
    mark = item.get_closest_marker("lab")
    return mark is None or variant in mark.args


def is_read_only(config: pytest.Config) -> bool:
    """Whether the tests run in a user's cluster. The option is unknown unless this directory was named."""
    return bool(config.getoption("--read-only", default=False) or os.environ.get("GPUWARDEN_E2E_KUBECONFIG"))


@pytest.fixture(scope="session")
def lab(request: pytest.FixtureRequest) -> Iterator[Lab]:
    """The running lab that LAB_DIR names, otherwise a new one that must leave nothing behind."""
    if is_read_only(request.config):
        pytest.fail("a test that only reads asks for the lab", pytrace=False)
    if os.environ.get("LAB_DIR"):
        try:
            found = Lab.attach()
        except LabError:
            pass
        else:
            yield found
            found.close()
            return
    need(os.geteuid() == 0, "root, for the container engine and the kubelet of the lab")
    missing = _missing()
    need(missing is None, f"the lab: {missing}")
    own = Lab.start(owned=True)
    yield own
    own.stop()  # raises, naming it, if any process, mount or file remains


@pytest.fixture(scope="session")
def kubeconfig(request: pytest.FixtureRequest) -> Path:
    """The cluster for read-only tests."""
    if not is_read_only(request.config):
        lab: Lab = request.getfixturevalue("lab")
        return lab.kubeconfig
    given = os.environ.get("GPUWARDEN_E2E_KUBECONFIG") or os.environ.get("KUBECONFIG") or "~/.kube/config"
    path = Path(given).expanduser()
    need(path.is_file(), f"a kubeconfig at {path}")
    return path


def _missing() -> str | None:
    try:
        chosen().find_programs()
    except LabError as error:
        return str(error)
    return None


@pytest.fixture
def pods(lab: Lab) -> Iterator[list[Any]]:
    """Pods added here are deleted afterwards."""
    created: list[Any] = []
    yield created
    lab.delete_pods(*created)


@pytest.fixture
def undo() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack
