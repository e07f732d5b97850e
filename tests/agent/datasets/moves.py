"""What the tests of the trash do again and again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from monitor.agent.datasets.check import PlannedUnit
from monitor.agent.datasets.errors import DatasetRefusedError, RefusalReason
from monitor.facts.datasets import TrashFact
from tests.agent.datasets.ground import NOW, Ground, planned

LATER = NOW + 1
TRASH = ".gpuwarden-trash"


def put(ground: Ground, plan: PlannedUnit | None = None, in_use: Any = None) -> TrashFact:
    with ground.trash(**({"in_use": in_use} if in_use else {})) as trash:
        return trash.put(plan or planned(ground.scanned()), "old-datasets", NOW)


def refused(act: Callable[[], object]) -> RefusalReason:
    with pytest.raises(DatasetRefusedError) as caught:
        act()
    return caught.value.reason


def outcomes(ground: Ground) -> list[str]:
    return [line.action or line.outcome for line in ground.journal.lines()]
