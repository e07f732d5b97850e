"""Cleanup: what would go, when and whose it is; what went; and what can be brought back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from starlette.responses import Response

from monitor.cleanup.journal import ItemState
from monitor.cleanup.shown import ShownItem, ShownPlan, ShownRun
from monitor.web.cleanup_api import CleanupBackend
from monitor.web.pages.render import PageRequest

RUNS = 40
ITEMS = 100


@dataclass(frozen=True)
class Share:
    """What would be taken from one owner, and when at the earliest."""

    owner: str | None
    items: int
    bytes: int
    first: float | None


class CleanupPages:
    """The pages about cleanup."""

    def __init__(self, asked: CleanupBackend) -> None:
        self._asked = asked

    def show(self, visit: PageRequest) -> Response:
        """Show what was done. What would be is asked for by the page: it takes longer, and changes nothing."""
        runs = [(run, _states(run)) for run in self._asked.history(RUNS, None)]
        history = visit.section("runs", "runs", runs=runs, most=ITEMS)
        return visit.answer("cleanup.html", visit.t("nav.cleanup"), history)

    def plan(self, visit: PageRequest) -> Response:
        """Show what each policy would do now, on every node where that is anything, and whose it is."""
        try:
            plans = self._asked.plans(visit.query("policy") or None, visit.lang)
        except ValueError:  # a link to a policy that is not configured any more
            plans = ()
        told = [plan for plan in plans if plan.items or plan.refused or plan.warnings]
        idle = [plan for plan in plans if plan not in told]
        return visit.fragment("plans", plans=told, idle=idle, shares=_shares(plans), most=ITEMS)

    def preview(self, visit: PageRequest) -> Response:
        """Show exactly what a run would do, before it is asked for."""
        policy, node = visit.query("policy"), visit.query("node") or None
        try:
            plans = self._asked.plans(policy, visit.lang)
        except ValueError as error:
            return visit.fragment("preview_run", error=str(error), plans=[], policy=policy, most=ITEMS)
        chosen = [plan for plan in plans if node in (None, plan.node)]
        return visit.fragment("preview_run", error=None, plans=chosen, policy=policy, most=ITEMS)


def _states(shown: ShownRun) -> Counter[ItemState]:
    return Counter(each.state for each in shown.items)


def _shares(plans: Sequence[ShownPlan]) -> list[Share]:
    """Return what would go by owner, the most first."""
    owned: dict[str | None, list[ShownItem]] = {}
    for plan in plans:
        for item in plan.items:
            owned.setdefault(item.owner, []).append(item)
    shares = [
        Share(
            owner,
            len(items),
            sum(item.frees_bytes or 0 for item in items),
            min((item.not_before for item in items if item.not_before is not None), default=None),
        )
        for owner, items in owned.items()
    ]
    return sorted(shares, key=lambda share: (-share.bytes, -share.items))
