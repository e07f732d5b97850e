"""The menu of all pages."""

from __future__ import annotations

from dataclasses import dataclass

from monitor.access.principal import Principal, Role
from monitor.web.context import PageDeps

KEYS = ("nodes", "pods", "users", "queues", "fits", "alerts", "cleanup", "report", "audit")
# Pages without an entry of their own belong to that of the list that leads to them.
PARENTS = {"gpus": "nodes", "jobs": "pods"}


@dataclass(frozen=True)
class MenuEntry:
    """A link of the menu; `current` if the open page belongs to it."""

    path: str
    key: str
    current: bool


def menu(path: str, deps: PageDeps, principal: Principal) -> list[MenuEntry]:
    """Entries of the pages that are available to the principal, for the page at `path`."""
    available = {
        "alerts": deps.alerts is not None,
        "cleanup": deps.cleanup is not None,
        "report": deps.reports is not None,
        "audit": deps.audit is not None and principal.has_role(Role.ADMIN),
    }
    first = path.split("/")[1]
    area = PARENTS.get(first, first)
    entries = [MenuEntry(f"/{key}", key, key == area) for key in KEYS if available.get(key, True)]
    return [MenuEntry("/", "overview", path == "/"), *entries]
