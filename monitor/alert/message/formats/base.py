"""Letters as text: what a format is made of, and how a letter is made to fit into what a receiver takes."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol
from urllib.parse import quote

from monitor.alert.message.compose import Locale, compose
from monitor.alert.message.document import AlertMessage, Span, SpanStyle, TextLine
from monitor.alert.model import Batch, Notification
from monitor.alert.receivers.base import OwnerContact
from monitor.base.text import ELLIPSIS, clean, shorten
from monitor.i18n import say

__all__ = ["ELLIPSIS", "NOBODY", "Markup", "Owners", "Tags", "clean", "fit", "holds", "shorten"]

Owners = Mapping[str, OwnerContact]
NO_OWNERS: Owners = {}
_NEEDED = 1  # lines up to this order have to fit for a digest to hold a notification
_WHOLE = frozenset({SpanStyle.LINK, SpanStyle.MENTION})  # half a link leads nowhere, half a name to somebody else
_SAFE_IN_URL = "/:?#@!$&*+,;=%-._~[]'"


class Markup(Protocol):
    """How one kind of receiver writes a letter. Nothing in a text becomes a mention, a link or a colour."""

    @property
    def joiner(self) -> str:
        """Return what stands between two lines."""
        ...

    def title(self, letter: AlertMessage) -> str:
        """Return the first line; empty where the title has a place of its own."""
        ...

    def line(self, line: TextLine, owners: Owners) -> str:
        """Return a line. Who is not among the owners is written by name."""
        ...


@dataclass(frozen=True)
class TagMarkup:
    """A format as a table: how text is escaped, and what is put around each style. It is a Markup."""

    escape: Callable[[str], str]
    heading: Callable[[AlertMessage, str], str]
    link: Callable[[str, str], str]
    mention: Callable[[OwnerContact], str | None] = lambda _: None
    around: Mapping[SpanStyle, tuple[str, str]] = field(default_factory=dict)
    escape_code: Callable[[str], str] | None = None
    joiner: str = "\n"

    def title(self, letter: AlertMessage) -> str:
        return self.heading(letter, self.escape(clean(letter.title)))

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


def fit(letter: AlertMessage, markup: Markup, limit_bytes: int, owners: Owners = NO_OWNERS) -> str:
    """Given a letter, return it written out, in at most `limit_bytes` of UTF-8.

    First whole lines are left out, the highest `order` first, and their number is said. When only lines that must stay
    (order 0) are left, their texts are shortened. Nothing is cut inside a character, a link or a tag.
    """
    kept = _drop_lines(letter, markup, limit_bytes, owners)
    written = _write(kept, markup, owners)
    if _bytes(written) <= limit_bytes:
        return written
    return _shorten_texts(kept, markup, limit_bytes, owners)


def capacity(
    notifications: Sequence[Notification], voice: Locale, markup: Markup, limit_bytes: int, owners: Owners = NO_OWNERS
) -> int:
    """Given notifications that wait, return how many of them, from the first, fit into one digest. At least one."""

    def too_long(count: int) -> bool:
        merged = tuple(notifications[:count])
        # How late it is when it is sent is not known yet: the longest that this can be said counts.
        latest = min((each.at for each in merged), default=0.0) + 359_999
        letter = compose(Batch(id="", receiver="", notifications=merged, at=latest), voice)
        needed = tuple(line for line in letter.lines if line.order <= _NEEDED)
        return _bytes(_write(replace(letter, lines=needed), markup, owners)) > limit_bytes

    most = min(len(notifications), max(1, limit_bytes // 30))  # no line is shorter: spares writing 5,000 of them
    if not too_long(most):
        return max(1, most)
    return max(1, bisect_left(range(1, most), True, key=too_long))


def _write(letter: AlertMessage, markup: Markup, owners: Owners) -> str:
    lines = [markup.title(letter), *(markup.line(line, owners) for line in letter.lines)]
    return markup.joiner.join(line for line in lines if line)


def _bytes(text: str) -> int:
    return len(text.encode())


def _drop_lines(letter: AlertMessage, markup: Markup, limit: int, owners: Owners) -> AlertMessage:
    """Return the letter with as few lines left out as are needed, and those of order 0 always kept."""
    sizes = [_bytes(markup.joiner + markup.line(line, owners)) for line in letter.lines]
    total = _bytes(markup.title(letter)) + sum(sizes)
    leaving = sorted(
        (index for index, line in enumerate(letter.lines) if line.order > 0),
        key=lambda index: (letter.lines[index].order, index),
    )
    dropped: set[int] = set()
    while leaving and total + _size_of_notice(letter, len(dropped), markup, owners) > limit:
        index = leaving.pop()
        dropped.add(index)
        total -= sizes[index]
    lines = tuple(line for index, line in enumerate(letter.lines) if index not in dropped)
    return replace(letter, lines=(*lines, *_notice(letter, len(dropped))))


def _notice(letter: AlertMessage, dropped: int) -> tuple[TextLine, ...]:
    if not dropped:
        return ()
    return (TextLine((Span(say(letter.lang, "alert.more-lines", {"count": dropped}), SpanStyle.MUTED),)),)


def _size_of_notice(letter: AlertMessage, dropped: int, markup: Markup, owners: Owners) -> int:
    return sum(_bytes(markup.joiner + markup.line(line, owners)) for line in _notice(letter, dropped))


def _shorten_texts(letter: AlertMessage, markup: Markup, limit: int, owners: Owners) -> str:
    """Return the letter with its texts as long as they may be; when even one character each is too much, less of it."""
    longest = max((len(span.text) for line in letter.lines for span in line.spans), default=0)

    def at_most(characters: int) -> str:
        return _write(_with_texts(letter, characters), markup, owners)

    fits = bisect_left(range(1, longest + 1), True, key=lambda characters: _bytes(at_most(characters)) > limit)
    if fits:
        return at_most(fits)
    bare = replace(letter, lines=letter.lines[:-1]) if letter.lines else None
    return _shorten_texts(bare, markup, limit, owners) if bare else _title_alone(letter, markup, limit)


def _with_texts(letter: AlertMessage, most: int) -> AlertMessage:
    lines = tuple(
        replace(line, spans=tuple(span if span.style in _WHOLE else _shorter(span, most) for span in line.spans))
        for line in letter.lines
    )
    return replace(letter, lines=lines)


def _shorter(span: Span, most: int) -> Span:
    return replace(span, text=shorten(span.text, most))


def _title_alone(letter: AlertMessage, markup: Markup, limit: int) -> str:
    def at_most(characters: int) -> str:
        return markup.title(replace(letter, title=shorten(letter.title, characters)))

    lengths = range(1, len(letter.title) + 1)
    fits = bisect_left(lengths, True, key=lambda characters: _bytes(at_most(characters)) > limit)
    return at_most(fits) if fits else ""
