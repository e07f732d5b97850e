"""A message before it has a format: lines made of spans. Formats turn it into markup and make it fit."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from monitor.facts.findings import Severity


class SpanStyle(StrEnum):
    """What a span is, for the format to show as it can."""

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
    """A piece of a line. `target` is a link's address, or the user name of who is mentioned."""

    text: str
    style: SpanStyle = SpanStyle.PLAIN
    target: str | None = None


@dataclass(frozen=True)
class TextLine:
    """A line. When a message is too long, the lines of the highest `order` go first, the last of them first."""

    spans: tuple[Span, ...]
    order: int = 0


@dataclass(frozen=True)
class AlertMessage:
    """A whole message. `id` is the parcel's; `resolved` tells the colour apart from `severity`.

    `mentions` are the users whose jobs this is about, `lang` the language that it is written in.
    """

    id: str
    title: str
    lines: tuple[TextLine, ...]
    severity: Severity
    resolved: bool = False
    mentions: tuple[str, ...] = ()
    lang: str = "en"
