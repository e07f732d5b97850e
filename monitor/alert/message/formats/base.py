"""Formats: rendering a message as markup, within the size limit of a receiver."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol
from urllib.parse import quote

from monitor.alert.message.compose import compose
from monitor.alert.message.document import AlertMessage, Span, SpanStyle, TextLine
from monitor.alert.message.locale import Locale
from monitor.alert.model import Batch, Notification
from monitor.alert.receivers.base import OwnerContact
from monitor.base.text import clean, shorten
from monitor.i18n import say

Owners = Mapping[str, OwnerContact]
NO_OWNERS: Owners = {}
_MAX_REQUIRED_ORDER = 1  # lines up to this order must fit for a digest to hold a notification
_MAX_LATENESS_SECONDS = 359_999.0  # takes the most characters
_MIN_LINE_BYTES = 30  # no line of a digest is shorter
_INDIVISIBLE = frozenset({SpanStyle.LINK, SpanStyle.MENTION})  # half of one would be broken or lead to someone else
_SAFE_IN_URL = "/:?#@!$&*+,;=%-._~[]'"


class Markup(Protocol):
    """Markup language of a receiver. It escapes texts, so that none becomes a mention, a link or a colour."""

    @property
    def joiner(self) -> str:
        """Separator of lines."""
        ...

    def title(self, message: AlertMessage) -> str:
        """First line; empty if the receiver shows the title elsewhere."""
        ...

    def line(self, line: TextLine, owners: Owners) -> str:
        """A line; a user without contact is written by name instead of mentioned."""
        ...


@dataclass(frozen=True)
class TagMarkup:
    """Markup defined by a table: how to escape text, and what surrounds each style."""

    escape: Callable[[str], str]
    heading: Callable[[AlertMessage, str], str]
    link: Callable[[str, str], str]
    mention: Callable[[OwnerContact], str | None] = lambda _: None
    around: Mapping[SpanStyle, tuple[str, str]] = field(default_factory=dict)
    escape_code: Callable[[str], str] | None = None
    joiner: str = "\n"

    def title(self, message: AlertMessage) -> str:
        return self.heading(message, self.escape(clean(message.title)))

    def line(self, line: TextLine, owners: Owners) -> str:
        return "".join(self._span(span, owners) for span in line.spans)

    def _span(self, span: Span, owners: Owners) -> str:
        text = clean(span.text)
        if span.style is SpanStyle.MENTION:
            owner = owners.get(span.target or span.text)
            return (self.mention(owner) if owner else None) or self.escape(text)
        if span.style is SpanStyle.LINK and span.target:
            return self.link(self.escape(text), quote(clean(span.target), safe=_SAFE_IN_URL))
        escape = self.escape_code if span.style is SpanStyle.CODE and self.escape_code else self.escape
        before, after = self.around.get(span.style, ("", ""))
        return f"{before}{escape(text)}{after}" if text else ""


def fit(message: AlertMessage, markup: Markup, limit_bytes: int, owners: Owners = NO_OWNERS) -> str:
    """Render a message in at most `limit_bytes` of UTF-8.

    Whole lines are dropped first, by descending `order`, and a notice gives their number. If only lines of order 0 are
    left, their texts are shortened. Characters, links and tags are never split.
    """
    remaining = _drop_lines(message, markup, limit_bytes, owners)
    rendered = _render(remaining, markup, owners)
    if _size(rendered) <= limit_bytes:
        return rendered
    return _shorten_texts(remaining, markup, limit_bytes, owners)


def capacity(
    notifications: Sequence[Notification], locale: Locale, markup: Markup, limit_bytes: int, owners: Owners = NO_OWNERS
) -> int:
    """How many of the notifications, from the first, fit into one digest; at least one."""

    def too_long(count: int) -> bool:
        merged = tuple(notifications[:count])
        # The lateness on delivery is not known yet, so the longest text for it counts.
        at = min((notification.at for notification in merged), default=0.0) + _MAX_LATENESS_SECONDS
        message = compose(Batch(id="", receiver="", notifications=merged, at=at), locale)
        required = tuple(line for line in message.lines if line.order <= _MAX_REQUIRED_ORDER)
        return _size(_render(replace(message, lines=required), markup, owners)) > limit_bytes

    most = min(len(notifications), max(1, limit_bytes // _MIN_LINE_BYTES))  # avoids rendering thousands of lines
    if not too_long(most):
        return max(1, most)
    return max(1, bisect_left(range(1, most), True, key=too_long))


def _render(message: AlertMessage, markup: Markup, owners: Owners) -> str:
    lines = [markup.title(message), *(markup.line(line, owners) for line in message.lines)]
    return markup.joiner.join(line for line in lines if line)


def _size(text: str) -> int:
    return len(text.encode())


def _drop_lines(message: AlertMessage, markup: Markup, limit_bytes: int, owners: Owners) -> AlertMessage:
    """Message without as many lines as necessary; those of order 0 are always kept."""
    sizes = [_size(markup.joiner + markup.line(line, owners)) for line in message.lines]
    total = _size(markup.title(message)) + sum(sizes)
    candidates = sorted(
        (index for index, line in enumerate(message.lines) if line.order > 0),
        key=lambda index: (message.lines[index].order, index),
    )
    dropped: set[int] = set()
    while candidates and total + _notice_size(message, len(dropped), markup, owners) > limit_bytes:
        index = candidates.pop()
        dropped.add(index)
        total -= sizes[index]
    lines = tuple(line for index, line in enumerate(message.lines) if index not in dropped)
    return replace(message, lines=(*lines, *_notice(message, len(dropped))))


def _notice(message: AlertMessage, dropped: int) -> tuple[TextLine, ...]:
    if not dropped:
        return ()
    return (TextLine((Span(say(message.lang, "alert.more-lines", {"count": dropped}), SpanStyle.MUTED),)),)


def _notice_size(message: AlertMessage, dropped: int, markup: Markup, owners: Owners) -> int:
    return sum(_size(markup.joiner + markup.line(line, owners)) for line in _notice(message, dropped))


def _shorten_texts(message: AlertMessage, markup: Markup, limit_bytes: int, owners: Owners) -> str:
    """Render with texts as long as possible; if one character each is too much, without the last lines."""
    longest = max((len(span.text) for line in message.lines for span in line.spans), default=0)

    def at_most(chars: int) -> str:
        return _render(_with_short_texts(message, chars), markup, owners)

    fitting = bisect_left(range(1, longest + 1), True, key=lambda chars: _size(at_most(chars)) > limit_bytes)
    if fitting:
        return at_most(fitting)
    if not message.lines:
        return _title_only(message, markup, limit_bytes)
    return _shorten_texts(replace(message, lines=message.lines[:-1]), markup, limit_bytes, owners)


def _with_short_texts(message: AlertMessage, chars: int) -> AlertMessage:
    def short(span: Span) -> Span:
        return span if span.style in _INDIVISIBLE else replace(span, text=shorten(span.text, chars))

    lines = tuple(replace(line, spans=tuple(short(span) for span in line.spans)) for line in message.lines)
    return replace(message, lines=lines)


def _title_only(message: AlertMessage, markup: Markup, limit_bytes: int) -> str:
    def at_most(chars: int) -> str:
        return markup.title(replace(message, title=shorten(message.title, chars)))

    lengths = range(1, len(message.title) + 1)
    fitting = bisect_left(lengths, True, key=lambda chars: _size(at_most(chars)) > limit_bytes)
    return at_most(fitting) if fitting else ""
