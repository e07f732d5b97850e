from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.agent.datasets.root_fixture import RootFixture, fingerprint, make_fixture


@pytest.fixture
def fixture(tmp_path: Path) -> Iterator[RootFixture]:
    """A root fixture whose canary must be unchanged at the end of the test."""
    root_fixture = make_fixture(tmp_path)
    before = fingerprint(root_fixture.canary)
    yield root_fixture
    assert fingerprint(root_fixture.canary) == before
