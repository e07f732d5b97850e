"""Limits of findings: what is long is cut, what is short stays the same object."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from monitor.base.text import ELLIPSIS
from monitor.detect.base import MAX_RAW_CHARS
from monitor.detect.bounds import MAX_TEXTS_CHARS, MAX_VALUE_CHARS, bounded_finding
from monitor.detect.labels import MAX_LABEL_CHARS, label_value, label_values
from monitor.facts.findings import Finding, Scope, Severity
from monitor.facts.text import Text

LONG = "n" * (MAX_LABEL_CHARS + 1)


def finding(**fields: Any) -> Finding:
    given: dict[str, Any] = {"labels": {"node": "n1"}, "headline": Text("external", {"text": "t", "count": 5})}
    return Finding(rule="x", severity=Severity.WARNING, cause="y", **(given | fields))


def texts(*lengths: int) -> tuple[Text, ...]:
    return tuple(Text("external", {"text": "t" * length}) for length in lengths)


def test_a_finding_within_its_limits_is_kept() -> None:
    whole = finding(evidence=texts(MAX_VALUE_CHARS), explains=(Scope(labels={"pod": "p"}),), raw="r" * MAX_RAW_CHARS)
    assert bounded_finding(whole) is whole


def test_long_labels_stay_unique_and_equal_in_scopes() -> None:
    cut = bounded_finding(finding(labels={"node": LONG, "gpu": "0"}, explains=(Scope(labels={"node": LONG}),)))
    other = bounded_finding(finding(labels={"node": LONG + "n", "gpu": "0"}))
    assert (len(cut.labels["node"]), cut.labels["gpu"]) == (MAX_LABEL_CHARS, "0")
    assert cut.labels["node"] != other.labels["node"]
    assert cut.explains[0].labels == {"node": cut.labels["node"]}


def test_values_are_cut_and_numbers_kept() -> None:
    cut = bounded_finding(finding(headline=Text("external", {"text": "t" * (MAX_VALUE_CHARS + 1), "count": 5})))
    text = str(cut.headline.values["text"])
    assert (len(text), text[-1], cut.headline.values["count"]) == (MAX_VALUE_CHARS, ELLIPSIS, 5)


def test_texts_beyond_the_limit_of_all_are_dropped() -> None:
    full = texts(*[MAX_VALUE_CHARS] * (MAX_TEXTS_CHARS // MAX_VALUE_CHARS))
    cut = bounded_finding(finding(evidence=(*full, *texts(1)), advice=(*full, *texts(0))))
    assert (cut.evidence, cut.advice) == (full, (*full, *texts(0)))


def test_raw_text_is_cut() -> None:
    cut = bounded_finding(replace(finding(), raw="r" * (MAX_RAW_CHARS + 1)))
    assert len(cut.raw or "") == MAX_RAW_CHARS


def test_a_label_is_never_empty_nor_long() -> None:
    assert (label_value("n1"), label_value("")) == ("n1", "?")
    assert len(label_value(LONG)) == MAX_LABEL_CHARS
    assert label_value(LONG) == bounded_finding(finding(labels={"node": LONG})).labels["node"], "or they do not match"
    assert label_values({"node": "n1", "user": None, "job": ""}) == {"node": "n1"}
