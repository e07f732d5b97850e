"""Items, runs, an outbox in memory and an executor that records its calls."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from monitor.alert.model import Notification
from monitor.alert.routes import Route
from monitor.cleanup.execute.run_plan import ItemOutcome
from monitor.cleanup.journal_records import CleanupRun, ItemState, JournalEntry, RunState
from monitor.cleanup.model import CleanupPlan, Item, Mode, Risk
from monitor.cleanup.notices import NoticeRouting
from monitor.facts.actions import RemoveImage
from monitor.facts.text import Text

NOW = 1_763_260_000.0
GIB = 1024**3


def remove(number: int = 1, **more: Any) -> RemoveImage:
    return RemoveImage(
        runtime="docker", image_id=f"sha256:{number:064x}", names=(f"lab/i{number}:1",), min_age_seconds=0.0, **more
    )


def item(number: int = 1, **more: Any) -> Item:
    given: dict[str, Any] = {
        "id": f"image/n1/docker/{number}", "name": f"lab/i{number}:1", "risk": Risk.LOW, "node": "n1",
        "why": Text(key="cleanup.why.unused", values={"seconds": 9.0, "bytes": GIB}), "frees_bytes": GIB,
        "not_before": NOW - 1, "act": remove(number),
    }  # fmt: skip
    return Item(**(given | more))


def plan(*items: Item, **more: Any) -> CleanupPlan:
    given: dict[str, Any] = {"id": "plan-1", "policy": "p", "kind": "images", "mode": Mode.ENFORCE, "at": NOW}
    return CleanupPlan(items=items, **(given | {"node": "n1"} | more))


def run(run_id: str = "run-1", **more: Any) -> CleanupRun:
    given: dict[str, Any] = {
        "policy": "p", "kind": "images", "mode": "enforce", "trigger": "cron", "node": "n1", "started_at": NOW,
        "state": RunState.RUNNING,
    }  # fmt: skip
    return CleanupRun(id=run_id, **(given | more))


@dataclass
class FakeExecutor:
    """Executes nothing, answers as configured, and records the calls."""

    answer: Callable[[Item], ItemOutcome] = lambda item: ItemOutcome(
        ItemState.DONE, "removed", freed_bytes=item.frees_bytes
    )
    executed: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)
    recovered: list[str | None] = field(default_factory=list)

    def execute(self, _run: CleanupRun, item: Item, request: str) -> ItemOutcome:
        assert request
        self.requests.append(request)
        self.executed.append(item.name)
        return self.answer(item)

    def recover(self, entry: JournalEntry) -> ItemOutcome:
        self.recovered.append(entry.request)
        return ItemOutcome(ItemState.DONE, "removed", freed_bytes=entry.item.frees_bytes)


@dataclass
class Outbox:
    """The alert outbox in memory; `broken` makes it fail."""

    receivers: tuple[str, ...] = ("wecom",)
    sent: list[Notification] = field(default_factory=list)
    notes: dict[str, bytes] = field(default_factory=dict)
    broken: Exception | None = None

    def routing(self) -> NoticeRouting:
        return NoticeRouting((Route(receivers=self.receivers),) if self.receivers else (), self.receivers)

    def note(self, name: str) -> bytes | None:
        return self.notes.get(name)

    def send(self, notifications: Sequence[Notification], notes: Mapping[str, bytes]) -> None:
        if self.broken is not None:
            raise self.broken
        self.sent += notifications
        self.notes |= notes

    def rules(self) -> list[str]:
        return [notification.subjects[0].finding.rule for notification in self.sent]
