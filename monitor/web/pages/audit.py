"""The record of what persons did by this page and by the API. For admins."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from starlette.responses import Response

from monitor.access.audit import AuditEntry
from monitor.web.pages.render import PageRequest

ENTRIES = 300


class AuditPage:
    """The page at /audit."""

    def __init__(self, entries: Callable[[int], Sequence[AuditEntry]]) -> None:
        self._entries = entries

    def show(self, visit: PageRequest) -> Response:
        """Show the latest entries, to those who may see them."""
        if not visit.person.may("admin"):
            refused = visit.section("audit", "not_allowed")
            return visit.answer("one.html", visit.t("nav.audit"), refused, status=403)
        listed = visit.section("audit", "audit", entries=self._entries(ENTRIES))
        return visit.answer("one.html", visit.t("nav.audit"), listed)
