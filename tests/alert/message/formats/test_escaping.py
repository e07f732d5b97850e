# ruff: noqa: E501  # a case is a row of a table
"""No name chosen by a user becomes a mention, a link or a colour in any format."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from monitor.alert.message.compose import compose
from monitor.alert.message.document import Span, SpanStyle, TextLine
from monitor.alert.message.formats import dingtalk, feishu, html, plain, slack, wecom
from monitor.alert.message.formats.base import Markup, TagMarkup, fit
from monitor.alert.message.locale import Locale
from monitor.alert.model import NotificationReason, Symptoms
from monitor.alert.receivers.base import OwnerContact
from monitor.facts.findings import Finding, Severity
from monitor.facts.text import Text
from tests.alert.message.documents import EVIL, LOCALES, NOW, batch, notification, over, subject

MARKUPS: dict[str, TagMarkup] = {
    "wecom": wecom.MARKUP, "wecom_text": wecom.TEXT_MARKUP, "dingtalk": dingtalk.MARKUP, "feishu": feishu.MARKUP,
    "slack": slack.MARKUP, "html": html.MARKUP, "plain": plain.MARKUP,
}  # fmt: skip
PIECES = (
    '<font color="info">', "</font>", "<@zhangsan>", "<@all>", "<!channel>", "<at id=all></at>", "[a](http://e)", "](", "[", "]", "(", ")",
    "`", "**", "*", "~", "#", "&lt;", "&#60;", "&", "\\", "\n", "\r", "\u2028", "\x1b[31m", "@13800000000", "<a href=x>", "|", "<http://e|x>", "kubectl ", "。", "🔴", "字",
)  # fmt: skip
TEXT = st.lists(st.sampled_from(PIECES) | st.text(max_size=5), max_size=12).map("".join)
OWNERS = {"zhang": OwnerContact(wecom="zhangsan", mobile="13800000000", feishu="ou_1", slack="U1")}


LINK, TAG, ENTITY = r"\[[^\[\]]*\]\([^)]*\)", r"<[^>]*>?", r"&[#\w]+;?"
ACTIVE = {
    "wecom": (LINK, TAG, ENTITY), "dingtalk": (LINK, TAG, ENTITY), "feishu": (LINK, TAG, r"&(?!#\d+;)"),
    "slack": (TAG, r"&(?!amp;|lt;|gt;)"), "wecom_text": (TAG,), "plain": (),
}  # fmt: skip


class Active(HTMLParser):
    """Collects the tags of a text."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag != "code":  # a name that looks like a command is shown as one
            self.tags.append(f"{tag} {attrs}")


def active(name: str, text: str) -> list[str]:
    """Parts of a message that are more than text."""
    if name == "html":
        parser = Active()
        parser.feed(text)
        parser.close()
        return sorted(parser.tags)
    return sorted(found for pattern in ACTIVE[name] for found in re.findall(pattern, text))


def written(name: str, text: str, lang: str = "en") -> str:
    """Messages in which `text` is every name that users choose."""
    found = Finding(
        rule="external" + text,
        severity=Severity.WARNING,
        cause=text,
        labels=dict.fromkeys(("node", "gpu", "pod", "namespace", "job", "image", "service"), text) | {"user": "zhang"},
        headline=Text(key="external", values={"text": text}),
        evidence=(Text(key="disk-image.used", values={"image": text, "bytes": 1, "users": text}),),
        advice=(Text(key="gpu-zombie.allocation.advice", values={"pod": text, "namespace": text}),),
    )
    symptoms = (Symptoms(rule=text, count=1, examples=({"pod": text},)),)
    locale = Locale(lang=lang, page=LOCALES["en"].page, cluster=text)
    message = compose(
        batch(notification(NotificationReason.NEW, subject(found, fingerprint="f"), symptoms=symptoms)), locale
    )
    together = compose(batch(*[notification(NotificationReason.MORE, subject(found), over(found))] * 2), locale)
    markup = MARKUPS[name]
    return fit(message, markup, 100_000, OWNERS) + markup.joiner + fit(together, markup, 100_000, OWNERS)


@pytest.mark.parametrize("name", MARKUPS)
@given(text=TEXT, lang=st.sampled_from(["en", "zh"]))
@example(text=EVIL, lang="en")
@example(text="](http://e)", lang="zh")
def test_a_name_is_never_more_than_text(name: str, text: str, lang: str) -> None:
    hostile, harmless = written(name, f"x{text}", lang), written(name, "x", lang)
    assert active(name, hostile) == active(name, harmless)
    assert hostile.count("\n") == harmless.count("\n")


@pytest.mark.parametrize("name", MARKUPS)
def test_owners_are_really_mentioned(name: str) -> None:
    expect = {"wecom": "<@zhangsan>", "dingtalk": "@13800000000", "feishu": "<at id=ou_1></at>", "slack": "<@U1>"}
    line = TextLine((Span("zhang", SpanStyle.MENTION, "zhang"), Span(" "), Span("li", SpanStyle.MENTION, "li")))
    assert MARKUPS[name].line(line, OWNERS) == f"{expect.get(name, 'zhang')} li"


BAD_IDS = ["", "a b", "<x>", "a>", "x</at>", "全", "a\nb"]


@pytest.mark.parametrize("value", BAD_IDS)
@pytest.mark.parametrize("name", MARKUPS)
def test_what_cannot_be_an_id_is_not_written_into_a_tag(name: str, value: str) -> None:
    owners = {"zhang": OwnerContact(wecom=value, mobile=value, mail=value, feishu=value, slack=value)}
    assert MARKUPS[name].line(TextLine((Span("zhang", SpanStyle.MENTION, "zhang"),)), owners) == "zhang"


def test_a_mail_address_is_mentioned_as_such() -> None:
    line = TextLine((Span("zhang", SpanStyle.MENTION, "zhang"),))
    assert feishu.MARKUP.line(line, {"zhang": OwnerContact(feishu="z@x.example")}) == "<at email=z@x.example></at>"


STYLES = [
    ("wecom", '**b** `c` <font color="comment">m</font> <font color="info">g</font> <font color="warning">w</font> [l](http://p/a%20%28b%29)'),
    ("wecom_text", "b c m g w l: http://p/a%20%28b%29"),
    ("dingtalk", "**b** `c` m **g** **w** [l](http://p/a%20%28b%29)"),
    ("feishu", "**b** c <font color='grey'>m</font> <font color='green'>g</font> <font color='red'>w</font> [l](http://p/a%20%28b%29)"),
    ("slack", "*b* `c` m *g* *w* <http://p/a%20%28b%29|l>"),
    ("html", '<b>b</b> <code>c</code> <span style="color:#757575">m</span> <span style="color:#2e7d32">g</span> <span style="color:#c62828">w</span> <a href="http://p/a%20%28b%29">l</a>'),
    ("plain", "b c m g w l: http://p/a%20%28b%29"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "expect"), STYLES)
def test_styles(name: str, expect: str) -> None:
    order = {"b": SpanStyle.BOLD, "c": SpanStyle.CODE, "m": SpanStyle.MUTED, "g": SpanStyle.GOOD, "w": SpanStyle.BAD}
    spans = [span for text, style in order.items() for span in (Span(text, style), Span(" "))]
    line = TextLine((*spans, Span("l", SpanStyle.LINK, "http://p/a (b)")))
    assert MARKUPS[name].line(line, {}) == expect


@pytest.mark.parametrize("name", ["wecom", "dingtalk", "slack", "plain"])
def test_a_command_can_be_copied(name: str) -> None:
    command = "umount -l /data && mount /data | grep -E 'a|b*' > x; jq .items[0]"
    shown = MARKUPS[name].line(TextLine((Span(command, SpanStyle.CODE),)), {})
    unescaped = shown.replace("&amp;", "&").replace("&gt;", ">") if name == "slack" else shown
    assert unescaped.strip("`") == command


TITLES = [
    ("wecom", False, '**<font color="warning">t</font>**'),
    ("wecom", True, '**<font color="info">t</font>**'),
    ("dingtalk", False, "### t"),
    ("feishu", False, ""),
    ("slack", False, "*t*"),
    ("html", False, '<b style="color:#c62828">t</b>'),
    ("html", True, '<b style="color:#2e7d32">t</b>'),
    ("plain", False, "t"),
]


@pytest.mark.parametrize(("name", "resolved", "expect"), TITLES)
def test_titles(name: str, resolved: bool, expect: str) -> None:
    message = compose(batch(notification(NotificationReason.NEW, subject(_finding())), at=NOW), LOCALES["en"])
    markup: Markup = MARKUPS[name]
    given_title = type(message)(id="", title="t", lines=(), severity=Severity.CRITICAL, resolved=resolved)
    assert markup.title(given_title) == expect
    assert message.title.startswith("🔴")


def _finding() -> Finding:
    return Finding(
        rule="r", severity=Severity.CRITICAL, cause="c", labels={}, headline=Text(key="external", values={"text": "x"})
    )
