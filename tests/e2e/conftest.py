"""End-to-end tests: in the lab, or those that only read in any cluster.

pytest tests/e2e                                      in a lab of its own, or in the one that LAB_DIR names
KUBECONFIG=... pytest tests/e2e --read-only           only tests marked `read_only`, in that cluster
GPUWARDEN_E2E_KUBECONFIG=... pytest tests/e2e         the same
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lab.errors import LabError
from tests.lab.lab import Lab
from tests.lab.programs import find_programs
from tests.support import need

HERE = Path(__file__).parent
# API servers are killed here: the client library drops such a connection without closing it, and Python says so later.
DROPPED = r"Exception ignored in. <ssl\.SSLSocket"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--read-only", action="store_true", help="end-to-end: run only tests that read, in the cluster of KUBECONFIG"
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "read_only: an end-to-end test that changes nothing and fits any cluster")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark what is in this directory as end-to-end and, in somebody's cluster, leave out what does not only read."""
    here = [item for item in items if item.path.is_relative_to(HERE)]
    for item in here:
        item.add_marker(pytest.mark.e2e)
        item.add_marker(pytest.mark.filterwarnings(f"ignore:{DROPPED}:pytest.PytestUnraisableExceptionWarning"))
    if is_read_only(config):
        writing = [item for item in here if item.get_closest_marker("read_only") is None]
        config.hook.pytest_deselected(items=writing)
        items[:] = [item for item in items if item not in writing]


def is_read_only(config: pytest.Config) -> bool:
    """Say whether the tests run in somebody's cluster. The option is unknown when this directory was not named."""
    return bool(config.getoption("--read-only", default=False) or os.environ.get("GPUWARDEN_E2E_KUBECONFIG"))


@pytest.fixture(scope="session")
def lab(request: pytest.FixtureRequest) -> Iterator[Lab]:
    """The lab that LAB_DIR names if it runs, else one of this run's own, of which nothing may stay."""
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
    need(os.geteuid() == 0, "root, for the Docker engine and the kubelet of the lab")
    missing = _missing()
    need(missing is None, f"the lab: {missing}")
    own = Lab.start(owned=True)
    yield own
    own.stop()  # raises, naming it, if anything runs, is mounted or lies about afterwards


@pytest.fixture(scope="session")
def kubeconfig(request: pytest.FixtureRequest) -> Path:
    """The cluster for tests that only read."""
    if not is_read_only(request.config):
        lab: Lab = request.getfixturevalue("lab")
        return lab.kubeconfig
    given = os.environ.get("GPUWARDEN_E2E_KUBECONFIG") or os.environ.get("KUBECONFIG") or "~/.kube/config"
    path = Path(given).expanduser()
    need(path.is_file(), f"a kubeconfig at {path}")
    return path


def _missing() -> str | None:
    try:
        find_programs()
    except LabError as error:
        return str(error)
    return None
