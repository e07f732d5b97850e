from __future__ import annotations

import time
from pathlib import Path

import pytest

from monitor.agent.actions.images import MAX_SETTLE_SECONDS, ImageActions
from monitor.agent.actions.runtime_images import HoldJournal
from monitor.agent.journal import ActionJournal
from monitor.agent.runtime import Runtimes


@pytest.mark.parametrize(("removal", "waits"), [(0.0, 2.0), (0.09, 2.0), (1.0, 20.0), (100.0, MAX_SETTLE_SECONDS)])
def test_a_busy_runtime_has_more_time_to_register_containers(
    removal: float, waits: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slept: list[float] = []
    monkeypatch.setattr(time, "sleep", slept.append)
    journal = HoldJournal(ActionJournal(str(tmp_path / "journal")))
    ImageActions(Runtimes("/none", ()), tuple, journal, settle=2.0)._settle(removal)
    assert slept == [waits]
