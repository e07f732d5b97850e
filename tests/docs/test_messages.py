"""The page of messages: every rule, whole sentences, every field filled."""

from __future__ import annotations

import re

import pytest

from docs.generate import messages_page
from docs.generate.job_messages import job_messages
from docs.generate.rules_page import ALL_RULES
from monitor.alert.sample import samples
from monitor.i18n import LANGUAGES

UNFILLED = re.compile(r"\.\.\.|…|[‹›]|\{\w*\}|\bNone\b|\bnan\b")


@pytest.fixture(params=LANGUAGES)
def lang(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def messages(lang: str) -> list[str]:
    """Every message of the page, its lines joined."""
    blocks = re.findall(r"(?:^> .*\n)+", messages_page.page(lang), flags=re.MULTILINE)
    return [re.sub(r"^> ", "", block, flags=re.MULTILINE) for block in blocks]


def test_every_message_of_every_rule_is_there(lang: str) -> None:
    page = messages_page.page(lang)
    assert [rule.rule for rule in ALL_RULES if f"\n## {rule.rule}\n" not in page] == []
    several = sum({"gpu", "pod"} <= samples(rule.rule)[0].finding(0.0).labels.keys() for rule in ALL_RULES)
    assert len(messages(lang)) == sum(len(samples(rule.rule)) + 1 for rule in ALL_RULES) + several + len(job_messages())


def test_no_field_is_left_open(lang: str) -> None:
    assert [text for text in messages(lang) if UNFILLED.search(text)] == []


def test_every_new_message_says_what_where_since_when_and_what_to_do(lang: str) -> None:
    since, advice = {"en": ("Since: ", "To do: "), "zh": ("开始：", "处理：")}[lang]
    new = [text for text in messages(lang)[: -len(job_messages())] if "✅" not in text]
    assert [text for text in new if since not in text or advice not in text] == []


def test_every_job_result_says_what_when_and_who(lang: str) -> None:
    wanted = {
        "en": ("(When|Since): ", "Affected: zhang · job bert"),
        "zh": ("(时间|开始)：", "影响：zhang · 作业 bert"),
    }
    results = messages(lang)[-len(job_messages()) :]
    assert [text for text in results for pattern in wanted[lang] if not re.search(pattern, text)] == []


def test_a_headline_is_a_sentence(lang: str) -> None:
    headlines = [text.splitlines()[1].removesuffix("<br>") for text in messages(lang) if "✅" not in text]
    assert [text for text in headlines if len(text) < 10] == []
    if lang == "en":
        verb = r"\b(is|are|has|have|had|was|were|does|do|did|cannot|can|will|ran|\w+ed|\w+s)\b"
        assert [text for text in headlines if not re.search(verb, text)] == []


PRESENT = {"en": re.compile(r"\b(is|are|has|have|does|cannot|still|now)\b"), "zh": re.compile("正在|仍|目前|还在|现在")}


def test_a_resolved_message_speaks_of_the_past(lang: str) -> None:
    over = [text for text in messages(lang) if "✅" in text]
    assert len(over) == len(ALL_RULES)
    bodies = ["\n".join(text.splitlines()[1:]) for text in over]
    assert [text for text in bodies if PRESENT[lang].search(text)] == []
