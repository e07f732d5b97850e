"""Cleanup: runs and what can be restored, plans by policy, node and owner."""

from __future__ import annotations

from collections import Counter

from starlette.responses import Response

from monitor.present.cleanup import why_kept
from monitor.present.cleanup_shares import owner_shares
from monitor.web.cleanup_api import CleanupBackend
from monitor.web.pages.render import PageRequest

MAX_RUNS = 40
MAX_ITEMS = 100
MAX_KEPT = 30  # items of a plan, and plans without items


class CleanupPages:
    """The pages about cleanup."""

    def __init__(self, cleanup: CleanupBackend) -> None:
        self._cleanup = cleanup

    def show(self, page: PageRequest) -> Response:
        """The runs. The page fetches the plans separately, because planning takes longer."""
        history = self._cleanup.history(MAX_RUNS, None)
        runs = [(run, Counter(item.state for item in run.items)) for run in history]
        section = page.section("runs", "runs", runs=runs, most=MAX_ITEMS)
        return page.respond("cleanup.html", page.t("nav.cleanup"), section)

    def plan(self, page: PageRequest) -> Response:
        """The current plans of all policies."""
        try:
            plans = self._cleanup.plans(page.query("policy") or None, page.lang)
        except ValueError:  # a link to a policy that is no longer configured
            plans = ()
        active = [plan for plan in plans if plan.items or plan.refused or plan.warnings]
        idle = [plan for plan in plans if plan not in active]
        times = {plan.policy: plan.next_run_at for plan in plans if plan.next_run_at is not None}
        runs = [(policy, page.minute(at)) for policy, at in sorted(times.items(), key=lambda item: item[1])]
        return page.fragment(
            "plans",
            plans=active,
            idle=idle,
            shares=owner_shares(plans),
            most=MAX_ITEMS,
            most_kept=MAX_KEPT,
            why_kept=why_kept,
            next_runs=runs,
        )

    def preview(self, page: PageRequest) -> Response:
        """The plan of a run, for confirmation."""
        policy, node = page.query("policy"), page.query("node") or None
        try:
            plans = self._cleanup.plans(policy, page.lang)
        except ValueError as error:
            return page.fragment("preview_run", error=str(error), plans=[], policy=policy, most=MAX_ITEMS)
        selected = [plan for plan in plans if node in (None, plan.node)]
        return page.fragment("preview_run", error=None, plans=selected, policy=policy, most=MAX_ITEMS)
