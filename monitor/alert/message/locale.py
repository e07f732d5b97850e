"""How a message is told: the language, the time zone, and where its links lead."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import quote
from zoneinfo import ZoneInfo

from monitor.facts.findings import Severity
from monitor.facts.text import Text, Value
from monitor.i18n import CATALOGS, say
from monitor.i18n.notes import sentence


@dataclass(frozen=True)
class Locale:
    """A language, the base address of the page (None: no links), the cluster's name and the readers' time zone."""

    lang: str = "en"
    page: str | None = None
    cluster: str | None = None
    timezone: str = "UTC"

    def say(self, key: str, **values: Value) -> str:
        """Return one of the sentences that messages are made of."""
        return say(self.lang, f"alert.{key}", values)

    def note(self, note: Text) -> str:
        """Return a finding's sentence."""
        return sentence(note, self.lang)

    def severity(self, severity: Severity) -> str:
        """Return how bad it is, in a word."""
        return self.say(f"severity.{severity.value}")

    def rule(self, rule: str) -> str:
        """Return the short name of a rule; alerts from elsewhere have names that no catalog knows."""
        return CATALOGS[self.lang].get(f"rule.{rule}", rule)

    def label(self, name: str, value: str) -> str:
        """Return a label in words."""
        return sentence(Text(key=f"label.{name}", values={"value": value}), self.lang)

    def names(self, names: Sequence[str], most: int) -> str:
        """Return a list of at most so many names, and how many there are if that is not all."""
        shown = self.say("list").join(names[:most])
        return self.say("names", names=shown, count=len(names)) if len(names) > most else shown

    def moment(self, at: float) -> str:
        """Return a time of day with its date, where the readers are."""
        return self._local(at, "%Y-%m-%d %H:%M %Z")

    def period(self, start: float, end: float) -> tuple[str, str]:
        """Return when something began and ended; the end without its date if that is the same."""
        same_day = self._local(start, "%Y-%m-%d") == self._local(end, "%Y-%m-%d")
        return self.moment(start), self.clock(end) if same_day else self.moment(end)

    def clock(self, at: float) -> str:
        """Return a time of day."""
        return self._local(at, "%H:%M")

    def _local(self, at: float, form: str) -> str:
        try:
            return datetime.fromtimestamp(at, ZoneInfo(self.timezone)).strftime(form)
        except (ValueError, OverflowError, OSError):  # a time that a broken clock gave
            return "?"

    def place(self, name: str) -> str | None:
        """Return where a part of the page is: `cleanup`, `report`. None if there is no page."""
        return None if self.page is None else f"{self.page.rstrip('/')}/{name}"

    def address(self, *, fingerprint: str | None = None, group: str | None = None) -> str | None:
        """Return where the page shows an alert, a group, or all of them. None if there is no page."""
        if self.page is None:
            return None
        base = f"{self.page.rstrip('/')}/alerts"
        if fingerprint is not None:
            return f"{base}/{quote(fingerprint, safe='')}"
        return base if group is None else f"{base}?group={quote(group.encode('utf-8', 'replace'), safe='')}"
