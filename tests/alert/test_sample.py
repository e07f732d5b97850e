"""Sample alerts: every rule has some, for each of its headlines, with plausible figures."""

from __future__ import annotations

import re

import pytest

from monitor.alert.message.compose import compose
from monitor.alert.message.formats.base import fit
from monitor.alert.message.formats.plain import MARKUP
from monitor.alert.message.locale import Locale
from monitor.alert.sample import BY_NAME, Sample, batch_of, sample_batch, samples
from monitor.alert.sample_values import BY_KEY, BY_RULE
from monitor.i18n import CATALOGS, LANGUAGES, fields
from monitor.i18n.notes import sentence
from monitor.queries.alerts import send_samples

NOW = 1_700_000_000.0
ALL = [sample for rule in BY_NAME for sample in samples(rule)]
UNFILLED = re.compile(r"\.\.\.|…|[{}]|\?|\bNone\b|<[a-z]+>")


@pytest.mark.parametrize("rule", sorted(BY_NAME))
def test_every_rule_has_a_sample_for_each_of_its_causes(rule: str) -> None:
    found = samples(rule)
    assert {sample.cause for sample in found} >= set(BY_NAME[rule].causes)
    assert found


@pytest.mark.parametrize("sample", ALL, ids=lambda sample: sample.headline)
def test_a_sample_is_whole_sentences_with_advice(sample: Sample) -> None:
    finding = sample.finding(NOW)
    assert finding.advice
    for lang in LANGUAGES:
        for text in (finding.headline, *finding.evidence, *finding.advice):
            words = sentence(text, lang)
            assert len(words) > len("It is.")
            assert set(text.values) == set(fields(CATALOGS["en"][text.key]))
        assert not UNFILLED.search(sentence(finding.headline, lang))


def test_every_value_is_used() -> None:
    keys = {key for sample in ALL for key in (sample.headline, *sample.evidence, *sample.advice)}
    assert set(BY_KEY) - keys == set()
    assert set(BY_RULE) - set(BY_NAME) == set()


@pytest.mark.parametrize(("lang", "word"), [("en", "test message"), ("zh", "测试")])
def test_a_sample_says_that_it_is_one(lang: str, word: str) -> None:
    message = compose(sample_batch("wecom", samples("disk-full")[0], NOW), Locale(lang=lang))
    text = "".join(span.text for line in message.lines for span in line.spans)
    assert word in message.title + text


def test_several_gpus_of_one_pod_are_one_line() -> None:
    sample = samples("gpu-zombie")[0]
    message = compose(batch_of(tuple(sample.finding(NOW, gpu) for gpu in "312"), "ops", NOW, marked=False), Locale())
    text = fit(message, MARKUP, 16_384)
    assert text.count("still holds GPU") == 1
    assert "GPU 1, 2, 3 on gpu-01" in text


@pytest.mark.parametrize(
    ("receiver", "rule", "words"), [("nobody", None, "no receiver 'nobody'"), (None, "nothing", "no rule 'nothing'")]
)
def test_what_is_not_known_is_said(receiver: str | None, rule: str | None, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        send_samples((), receiver, rule, NOW)
