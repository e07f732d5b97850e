"""Steps shared by the tests of the trash."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from monitor.agent.datasets.check import PlannedUnit
from monitor.agent.datasets.errors import DatasetRefusedError, RefusalReason
from monitor.facts.datasets import TrashFact
from tests.agent.datasets.root_fixture import NOW, RootFixture, planned

LATER = NOW + 1
TRASH = ".gpuwarden-trash"


def put(fixture: RootFixture, plan: PlannedUnit | None = None, find_uses: Any = None) -> TrashFact:
    with fixture.trash(**({"find_uses": find_uses} if find_uses else {})) as trash:
        return trash.put(plan or planned(fixture.scanned()), "old-datasets", NOW)


def refused(operation: Callable[[], object]) -> RefusalReason:
    with pytest.raises(DatasetRefusedError) as caught:
        operation()
    return caught.value.reason


def outcomes(fixture: RootFixture) -> list[str]:
    return [line.action or line.outcome for line in fixture.journal.lines()]
