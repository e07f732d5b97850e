"""The audit log, for admins."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from starlette.responses import Response

from monitor.access.audit import AuditEntry
from monitor.web.pages.render import PageRequest

MAX_ENTRIES = 300


class AuditPage:
    """The page at /audit."""

    def __init__(self, entries: Callable[[int], Sequence[AuditEntry]]) -> None:
        self._entries = entries

    def show(self, page: PageRequest) -> Response:
        if not page.principal.has_role("admin"):
            refused = page.section("audit", "not_allowed")
            return page.respond("one.html", page.t("nav.audit"), refused, status=403)
        entries = page.section("audit", "audit", entries=self._entries(MAX_ENTRIES))
        return page.respond("one.html", page.t("nav.audit"), entries)
