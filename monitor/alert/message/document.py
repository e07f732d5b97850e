"""A message before formatting: lines made of spans. Formats turn it into markup and make it fit."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from monitor.alert.charts import MessageCharts
from monitor.facts.findings import Severity


class SpanStyle(StrEnum):
    """Meaning of a span, which each format renders as it can."""

    PLAIN = "plain"
    BOLD = "bold"
    MUTED = "muted"
    GOOD = "good"
    BAD = "bad"
    CODE = "code"
    LINK = "link"
    MENTION = "mention"


@dataclass(frozen=True)
class Span:
    """A piece of a line; `target` is the URL of a link, or the user name of a mention."""

    text: str
    style: SpanStyle = SpanStyle.PLAIN
    target: str | None = None


@dataclass(frozen=True)
class TextLine:
    """A line. If a message is too long, lines with the highest `order` are dropped first, starting with the last."""

    spans: tuple[Span, ...]
    order: int = 0


@dataclass(frozen=True)
class AlertMessage:
    """A whole message; `id` is that of the batch. `resolved` takes precedence over `severity` for the colour.

    `mentions` are the owners of the affected jobs. Only HTML shows `charts`.
    """

    id: str
    title: str
    lines: tuple[TextLine, ...]
    severity: Severity
    resolved: bool = False
    mentions: tuple[str, ...] = ()
    lang: str = "en"
    charts: MessageCharts | None = None
