from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.agent.datasets.ground import Ground, fingerprint, make_ground


@pytest.fixture
def ground(tmp_path: Path) -> Iterator[Ground]:
    """A ground whose canary is looked at again when the test is over: whatever the test does, it must be unhurt."""
    made = make_ground(tmp_path)
    before = fingerprint(made.canary)
    yield made
    assert fingerprint(made.canary) == before
