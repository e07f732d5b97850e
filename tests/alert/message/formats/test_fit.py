# a case is a row of a table
from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitor.alert.message.compose import compose
from monitor.alert.message.document import AlertMessage, Span, SpanStyle, TextLine
from monitor.alert.message.formats import dingtalk, feishu, html, plain, slack, wecom
from monitor.alert.message.formats.base import Markup, capacity, fit
from monitor.alert.model import Notification, NotificationReason
from monitor.facts.findings import Severity
from tests.alert.message.documents import CASES, LOCALES, OWNERS, batch, failed_pull, notification, over, subject

MARKUPS = [*(module.MARKUP for module in (wecom, dingtalk, feishu, slack, html, plain)), wecom.TEXT_MARKUP]
LINES = (
    TextLine((Span("must stay"),)),
    TextLine((Span("evidence 1"),), 4),
    TextLine((Span("evidence 2"),), 4),
    TextLine((Span("advice"),), 1),
)


def message(*lines: TextLine, title: str = "title", lang: str = "en") -> AlertMessage:
    return AlertMessage(id="p", title=title, lines=lines or LINES, severity=Severity.WARNING, lang=lang)


FITS = [
    ("all of it", 100, "title\nmust stay\nevidence 1\nevidence 2\nadvice"),
    ("exactly", 44, "title\nmust stay\nevidence 1\nevidence 2\nadvice"),
    ("the last of the highest order goes first", 43, "title\nmust stay\nadvice\n... 2 more lines"),
    ("then lower orders", 38, "title\nmust stay\n... 3 more lines"),
    ("then texts are shortened", 24, "title\nmust s…\n... 3…"),
    ("then lines go", 12, "title\nmus…"),
    ("then the title", 4, "t…"),
    ("nothing fits", 2, ""),
]  # fmt: skip


@pytest.mark.parametrize(("name", "limit", "expect"), FITS, ids=[row[0] for row in FITS])
def test_fit(name: str, limit: int, expect: str) -> None:
    assert fit(message(), plain.MARKUP, limit) == expect


def test_one_line_may_be_enough() -> None:
    lines = (TextLine((Span("must stay"),)), TextLine((Span("e" * 60),), 4), TextLine((Span("f" * 60),), 4))
    assert fit(message(*lines), plain.MARKUP, 110) == f"title\nmust stay\n{'e' * 60}\n... 1 more line"


def test_chinese_says_so_in_chinese() -> None:
    assert fit(message(lang="zh"), plain.MARKUP, 43) == "title\nmust stay\n……还有 3 行未显示"


def test_links_and_mentions_are_whole_or_gone() -> None:
    line = TextLine(
        (Span("w" * 100), Span("link", SpanStyle.LINK, "http://p/alerts"), Span("zhang", SpanStyle.MENTION, "zhang"))
    )
    assert fit(message(line), wecom.MARKUP, 120, OWNERS).endswith("…[link](http://p/alerts)<@zhangsan>")
    assert "http" not in fit(message(line), wecom.MARKUP, 60, OWNERS)


SPANS = st.builds(Span, st.text(max_size=60), st.sampled_from(SpanStyle), st.just("http://p/a(b)"))
MESSAGES = st.builds(
    AlertMessage,
    id=st.just("p"),
    title=st.text(max_size=130),
    lines=st.lists(st.builds(TextLine, st.lists(SPANS, max_size=4).map(tuple), st.integers(0, 5)), max_size=14).map(
        tuple
    ),
    severity=st.sampled_from(Severity),
    resolved=st.booleans(),
    lang=st.sampled_from(["en", "zh"]),
)


@pytest.mark.parametrize("markup", MARKUPS)
@given(given_message=MESSAGES, limit=st.integers(0, 1500))
def test_never_more_bytes_and_never_half_a_tag(markup: Markup, given_message: AlertMessage, limit: int) -> None:
    text = fit(given_message, markup, limit, OWNERS)
    assert len(text.encode()) <= limit
    for tag in ("font", "b", "span", "code", "a", "at"):
        assert len(re.findall(rf"<{tag}[ >]", text)) == text.count(f"</{tag}>") or markup in (
            plain.MARKUP,
            wecom.TEXT_MARKUP,
        )
    assert text.count("](") == text.count("](http://p/a%28b%29)") or markup in (plain.MARKUP, wecom.TEXT_MARKUP)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("lang", LOCALES)
def test_real_messages_fit_where_they_are_sent(case: str, lang: str) -> None:
    given_message = compose(CASES[case], LOCALES[lang])
    text = fit(given_message, wecom.MARKUP, 4096, OWNERS)
    assert "more line" not in text or case == "hostile"
    short = fit(given_message, wecom.TEXT_MARKUP, 2048)
    assert len(short.encode()) <= 2048
    assert given_message.title[:10] in short


def storm(count: int) -> list[Notification]:
    pulls = [notification(NotificationReason.NEW, subject(failed_pull(number))) for number in range(count)]
    return [
        *pulls[: count // 2],
        *(notification(NotificationReason.RESOLVED, over(failed_pull(n))) for n in range(count // 2, count)),
    ]


@pytest.mark.parametrize("lang", LOCALES)
@pytest.mark.parametrize(
    ("markup", "limit"), [(wecom.MARKUP, 4096), (wecom.TEXT_MARKUP, 2048), (dingtalk.MARKUP, 20_000)]
)
def test_a_digest_holds_as_many_as_fit(markup: Markup, limit: int, lang: str) -> None:
    waiting, locale = storm(500), LOCALES[lang]
    count = capacity(waiting, locale, markup, limit, OWNERS)
    late = batch(*waiting[:count], at=waiting[0].at + 3000)
    text = fit(compose(late, locale), markup, limit, OWNERS)
    assert [each for each in waiting[:count] if each.subjects[0].finding.labels["pod"] not in text] == []
    assert len(fit(compose(batch(*waiting[: count + 1]), locale), markup, 10**6, OWNERS).encode()) > limit - 60
    assert count >= limit // 120


HOLDS = [(0, 1), (1, 1), (3, 3)]


@pytest.mark.parametrize(("count", "expect"), HOLDS)
def test_holds_a_few(count: int, expect: int) -> None:
    assert capacity(storm(count), LOCALES["en"], wecom.MARKUP, 4096) == expect


def test_holds_at_least_one() -> None:
    assert capacity(storm(5), LOCALES["en"], wecom.MARKUP, 10) == 1
