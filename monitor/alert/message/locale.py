"""Locale of a message: language, time zone, and the base URL of its links."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import quote

from monitor.base.localtime import format_local, local_minute
from monitor.facts.findings import Severity
from monitor.facts.text import Text, Value
from monitor.i18n import CATALOGS, code, say
from monitor.i18n.notes import sentence


@dataclass(frozen=True)
class Locale:
    """Language and time zone of the readers, base URL of the page (None: no links), and the cluster's name."""

    lang: str = "en"
    page: str | None = None
    cluster: str | None = None
    timezone: str = "UTC"

    def say(self, key: str, **values: Value) -> str:
        """Text of a message part."""
        return say(self.lang, f"alert.{key}", values)

    def text(self, text: Text) -> str:
        """Text of a finding."""
        return sentence(text, self.lang)

    def severity(self, severity: Severity) -> str:
        return self.say(f"severity.{severity.value}")

    def rule(self, rule: str) -> str:
        """Short name of a rule; alerts from elsewhere keep theirs."""
        return CATALOGS[self.lang].get(f"rule.{rule}", rule)

    def cause(self, cause: str) -> str:
        """Name of a cause in a few words, without a verb in the present tense."""
        name = CATALOGS[self.lang].get(f"alert.cause.{cause}") or code(self.lang, cause)
        return name.replace("-", " ") if name == cause else name

    def label(self, name: str, value: str) -> str:
        return sentence(Text(key=f"label.{name}", values={"value": value}), self.lang)

    def names(self, names: Sequence[str], limit: int) -> str:
        """List of up to `limit` names, with the total number if there are more."""
        shown = self.say("list").join(names[:limit])
        return self.say("names", names=shown, count=len(names)) if len(names) > limit else shown

    def timestamp(self, at: float) -> str:
        return local_minute(at, self.timezone)

    def time_of_day(self, at: float) -> str:
        return self._format(at, "%H:%M")

    def period(self, start: float, end: float) -> tuple[str, str]:
        """Start and end of a period; the end without the date if that is the same."""
        same_day = self._format(start, "%Y-%m-%d") == self._format(end, "%Y-%m-%d")
        return self.timestamp(start), self.time_of_day(end) if same_day else self.timestamp(end)

    def _format(self, at: float, form: str) -> str:
        return format_local(at, self.timezone, form)

    def page_url(self, name: str) -> str | None:
        """URL of a section of the page, such as `cleanup` or `report`; None without a page."""
        return None if self.page is None else f"{self.page.rstrip('/')}/{name}"

    def alert_url(self, *, fingerprint: str | None = None, group: str | None = None) -> str | None:
        """URL of an alert, a group, or all alerts on the page; None without a page."""
        base = self.page_url("alerts")
        if base is None or (fingerprint is None and group is None):
            return base
        if fingerprint is not None:
            return f"{base}/{quote(fingerprint, safe='')}"
        return f"{base}?group={quote((group or '').encode('utf-8', 'replace'), safe='')}"
