from __future__ import annotations

import pytest

from monitor.alert.message.compose import compose
from monitor.alert.message.locale import Locale
from monitor.alert.sample import sample_batch, sample_finding
from monitor.i18n import LANGUAGES
from monitor.i18n.notes import sentence
from monitor.queries.alerts import SAMPLE_CAUSES, send_samples

NOW = 1_700_000_000.0


@pytest.mark.parametrize("rule", sorted(SAMPLE_CAUSES))
def test_of_every_rule_there_is_a_sample_in_whole_sentences(rule: str) -> None:
    finding = sample_finding(rule, SAMPLE_CAUSES[rule], NOW)
    for lang in LANGUAGES:
        for note in (finding.headline, *finding.advice):
            assert note.key not in sentence(note, lang)
    assert finding.since == NOW - 600.0


@pytest.mark.parametrize(("lang", "word"), [("en", "test message"), ("zh", "测试")])
def test_a_sample_says_that_it_is_one(lang: str, word: str) -> None:
    message = compose(sample_batch("wecom", "disk-full", "images", NOW), Locale(lang=lang))
    text = "".join(span.text for line in message.lines for span in line.spans)
    assert word in message.title + text


def test_what_has_no_words_has_no_sample() -> None:
    with pytest.raises(ValueError, match="no text for nothing"):
        sample_finding("nothing", "at-all", NOW)


@pytest.mark.parametrize(
    ("receiver", "rule", "words"), [("nobody", None, "no receiver 'nobody'"), (None, "nothing", "no rule 'nothing'")]
)
def test_what_is_not_known_is_said(receiver: str | None, rule: str | None, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        send_samples((), receiver, rule, NOW)
