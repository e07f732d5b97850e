from __future__ import annotations

import re

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from monitor.alert.matchers import (
    MAX_MATCHERS,
    Matcher,
    exact_matcher,
    known_matchers,
    matchers_of,
    matches,
    parse_matcher,
)
from monitor.alert.model import labels_of
from tests.alert.scenario import CRITICAL, finding


@pytest.mark.parametrize(
    ("text", "name", "op", "value"),
    [
        ("node=gpu1", "node", "=", "gpu1"),
        ("node!=gpu1", "node", "!=", "gpu1"),
        ("node=~gpu[0-9]+", "node", "=~", "gpu[0-9]+"),
        ("queue!~test-.*", "queue", "!~", "test-.*"),
        ('  user = "zhang san" ', "user", "=", "zhang san"),
        ("user='li'", "user", "=", "li"),
        (r'mount="/a\"b\\"', "mount", "=", '/a"b\\'),
        ("user=", "user", "=", ""),
        ("image=harbor.example/a/b:1=2", "image", "=", "harbor.example/a/b:1=2"),
        ("image=~a|b", "image", "=~", "a|b"),
    ],
)
def test_a_matcher_is_read(text: str, name: str, op: str, value: str) -> None:
    matcher = parse_matcher(text)
    assert (matcher.name, matcher.op, matcher.value) == (name, op, value)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("gpu1", "write label=value"),
        ("", "write label=value"),
        ("=gpu1", "write label=value"),
        ("1node=a", "write label=value"),
        ("node==gpu1", "node=value for a value"),
        ("node=~~gpu1", "node=~pattern for a pattern"),
        ("node>3", "write label=value"),
        ('user="zhang', "quote is not closed"),
        ('user="', "quote is not closed"),
        ("node=~gpu[", "invalid pattern 'gpu['"),
        ("node!~(a", "invalid pattern '(a'"),
        (r"node=~(a)\1", "without look-around and backreferences"),
        ("node=~" + "a" * 4097, "too long for a pattern"),
        ("node=" + "a" * 5000, "too long for a matcher"),
    ],
)
def test_what_is_no_matcher_is_refused_in_words(text: str, says: str) -> None:
    with pytest.raises(ValueError, match=re.escape(says)):
        parse_matcher(text)


@pytest.mark.parametrize(
    ("text", "labels", "met"),
    [
        ("node=gpu1", {"node": "gpu1"}, True),
        ("node=gpu1", {"node": "gpu10"}, False),
        ("node!=gpu1", {"node": "gpu2"}, True),
        ("node!=gpu1", {}, True),
        ("user=", {}, True),
        ("user!=", {}, False),
        ("node=~gpu1", {"node": "gpu10"}, False),  # anchored at both ends
        ("node=~gpu1|gpu2", {"node": "xgpu2"}, False),
        ("node=~gpu1|gpu2", {"node": "gpu2"}, True),
        ("node!~gpu.*", {"node": "cpu1"}, True),
        ("node!~gpu.*", {"node": "gpu1"}, False),
        ("user=~.+", {}, False),
        ("user=~.*", {}, True),
        ("pod=~a.b", {"pod": "a\nb"}, True),
        ("node=~[[:alpha:]]+", {"node": "gpu"}, True),
        ("user=~.{3}", {"user": "张三丰"}, True),  # characters, not bytes
    ],
)
def test_a_matcher_meets_labels(text: str, labels: dict[str, str], met: bool) -> None:
    assert matches([parse_matcher(text)], labels) is met


def test_all_matchers_must_be_met_and_none_are_met_by_all() -> None:
    both = [parse_matcher("node=gpu1"), parse_matcher("user=zhang")]
    assert matches(both, {"node": "gpu1", "user": "zhang"})
    assert not matches(both, {"node": "gpu1", "user": "li"})
    assert matches([], {"node": "gpu1"})


@pytest.mark.parametrize("op", ["=~", "!~"])
def test_a_stored_pattern_that_is_invalid_is_kept_and_matches_nothing(op: str) -> None:
    stored = msgspec.json.encode({"name": "node", "op": op, "value": "(?=a)"})
    matcher = msgspec.json.decode(stored, type=Matcher)
    assert "invalid perl operator" in (matcher.problem or "")
    assert [matcher.matches({"node": name}) for name in ("a", "", "b")] == [False, False, False]
    assert msgspec.json.decode(msgspec.json.encode(matcher)) == msgspec.json.decode(stored)


@given(st.text())
@example("~a")
@example("= b")
@example('say "no"\\')
def test_the_matcher_of_a_value_meets_this_value_only(value: str) -> None:
    matcher = parse_matcher(exact_matcher("user", value))
    assert (matcher.name, matcher.op, matcher.value) == ("user", "=", value)
    assert matcher.matches({"user": value})
    assert not matcher.matches({"user": value + "x"})


@given(st.text())
def test_any_text_is_a_matcher_or_refused(text: str) -> None:
    try:
        matcher = parse_matcher(text)
    except ValueError:
        return
    assert matches([matcher], {}) in (True, False)


def test_the_labels_of_an_alert() -> None:
    found = finding("gpu1", CRITICAL, rule="image-pull", cause="dns", user="zhang")
    expected = {
        "alertname": "ImagePull",
        "severity": "critical",
        "cause": "dns",
        "cluster": "a",
        "node": "gpu1",
        "user": "zhang",
    }
    assert labels_of(found, "a") == expected
    assert "cluster" not in labels_of(found, None)
    assert labels_of(finding(cluster="b"), "a")["cluster"] == "b"


def test_matchers_of_alerts_are_few_and_name_labels_of_alerts() -> None:
    known = ("node=n1", "severity=critical", "alertname=~Disk.*")
    assert known_matchers(known) == known
    assert [matcher.name for matcher in matchers_of(known)] == ["node", "severity", "alertname"]
    with pytest.raises(ValueError, match="'nodes': unknown label; did you mean 'node'"):
        known_matchers(("severity=critical", "nodes=n1"))
    with pytest.raises(ValueError, match="write label=value"):
        known_matchers(("n1",))
    assert len(known_matchers(("node=n1",) * MAX_MATCHERS)) == MAX_MATCHERS
    with pytest.raises(ValueError, match="101 matchers are too many; the most are 100"):
        known_matchers(("node=n1",) * (MAX_MATCHERS + 1))
