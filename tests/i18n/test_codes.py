from __future__ import annotations

from monitor.detect.meta import META_RULES
from monitor.detect.rules import RULES
from monitor.explain.error_chain.causes import PullFailureCause
from monitor.i18n import code, say
from monitor.i18n.zh.codes import CODES


def test_every_cause_has_a_chinese_name() -> None:
    causes = {cause for rule in (*RULES, *META_RULES) for cause in getattr(rule, "causes", ())}
    causes |= {cause.value for cause in PullFailureCause}
    assert causes - CODES.keys() == set()


def test_a_name_is_chinese() -> None:
    assert [word for word, name in CODES.items() if not any("一" <= letter <= "鿿" for letter in name)] == []


def test_a_cause_with_the_name_of_its_rule_has_the_title_of_the_rule() -> None:
    assert code("zh", "image-oversize") == say("zh", "rule.image-oversize", {})
    assert code("en", "image-oversize") == "image-oversize"


def test_an_unknown_code_is_shown_as_it_is() -> None:
    assert code("zh", "new-code") == "new-code"
    assert code("en", "pod-finished") == "pod-finished"


def test_a_text_inserts_the_name() -> None:
    values: dict[str, str | int | float] = {"mount": "/data", "count": 2, "total": 3, "state": "hung"}
    assert "（无响应）" in say("zh", "mount-lost.everywhere", values)
    assert "(hung)" in say("en", "mount-lost.everywhere", values)
