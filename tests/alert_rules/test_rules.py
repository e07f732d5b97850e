"""The rule files: promtool checks, a test case per rule, only existing metric names, texts in both languages."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from docs.generate.alert_rules import exported_rules, findings_rules
from monitor.agent.metrics import AgentMetrics
from monitor.alert.model import alertname
from monitor.daemon.metrics import catalogue
from monitor.detect.meta import META_RULES
from monitor.detect.rules import RULES
from tests.alert_rules.rules import (
    ALERTS,
    DYNAMIC,
    RULE_FILES,
    TEST_FILES,
    RuleText,
    alerts,
    cases,
    expressions,
    recorded,
    rules,
)
from tests.support import need
from tests.support.snapshots import full_snapshot

RUNBOOK = "docs/rules.md#"  # runbooks of findings are only here; those of the monitor itself are in the README
OWN_RUNBOOK = "alerts/README.md#"
ALERT_LANGUAGES = ("summary", "description", "summary_zh", "description_zh")
HAN = re.compile(r"[\u4e00-\u9fff]")
ALERTS_SAMPLE = re.compile(r'(\w+)="([^"]*)"')
LABEL = re.compile(r"\$labels\.(\w+)")


def promtool(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    need(shutil.which("promtool") is not None, "promtool (Debian package prometheus)")
    command = ["promtool", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)


def test_prometheus_takes_the_files() -> None:
    done = promtool("check", "rules", "--lint-fatal", *RULE_FILES)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_case_comes_out_as_written() -> None:
    with ThreadPoolExecutor(2) as pool:
        done = list(pool.map(lambda path: promtool("test", "rules", path), TEST_FILES))
    failed = [each.stdout + each.stderr for each in done if each.returncode != 0]
    assert not failed, "\n".join(failed)


def expected_alerts() -> Iterator[tuple[str, dict[str, str]]]:
    """(rule files, labels) of each alert that a case expects to fire."""
    for files, case in cases():
        for asked in case["promql_expr_test"]:
            for sample in asked["exp_samples"]:
                if sample["labels"].startswith("ALERTS{"):
                    yield files, dict(ALERTS_SAMPLE.findall(sample["labels"]))


def expected_silence() -> Iterator[tuple[str, str]]:
    """(rule files, expression) of each query for which a case expects no alert."""
    for files, case in cases():
        for asked in case["promql_expr_test"]:
            if asked["expr"].startswith("ALERTS") and not asked["exp_samples"]:
                yield files, asked["expr"]


def is_same(rule: RuleText, labels: dict[str, str]) -> bool:
    fixed = {name: value for name, value in rule.labels.items() if DYNAMIC not in value}
    return labels["alertname"] == rule.name and fixed.items() <= labels.items()


def test_every_alert_is_seen_to_fire_and_to_be_silent() -> None:
    fired, silent = list(expected_alerts()), list(expected_silence())
    for rule in alerts():
        firing = [labels for files, labels in fired if rule.file in files and is_same(rule, labels)]
        assert any(labels["alertstate"] == "firing" for labels in firing), f"no case in which it fires: {rule}"
        quiet = [expr for files, expr in silent if rule.file in files]
        assert any(rule.name in expr or "alertname" not in expr for expr in quiet), f"never seen silent: {rule}"


def test_every_recorded_series_has_a_case_with_a_value() -> None:
    asked = [
        sample["labels"]
        for _, case in cases()
        for question in case["promql_expr_test"]
        for sample in question["exp_samples"]
    ]
    without = [name for name in recorded() if not any(sample.partition("{")[0] == name for sample in asked)]
    assert not without


def known_metrics() -> set[str]:
    text = AgentMetrics().render(full_snapshot()).decode()
    agent = {sample.name for family in text_string_to_metric_families(text) for sample in family.samples}
    return agent | {name.name for name in catalogue()} | {"up", *recorded()}


def test_every_name_in_an_expression_exists() -> None:
    known = known_metrics()
    unknown = {str(rule): missing for rule in rules() if (missing := rule.metrics() - known)}
    assert not unknown


def test_what_is_recorded_is_recorded_once_and_named_by_level_metric_and_operation() -> None:
    names = [rule.name for rule in rules() if not rule.is_alert]
    assert len(names) == len(set(names))
    assert all(re.fullmatch(r"[a-z_]+:gpuwarden_[a-z_]+:[a-z0-9_]+", name) for name in names)


def test_findings_alone_need_no_other_file() -> None:
    own = {name for name, rule in recorded().items() if rule.file == "findings.rules.yml"}
    used = {name for rule in rules() if rule.file == "findings.rules.yml" for name in rule.metrics() if ":" in name}
    assert used <= own


@pytest.mark.parametrize("rule", alerts(), ids=str)
def test_an_alert_says_what_it_is_in_both_languages(rule: RuleText) -> None:
    said = rule.annotations
    assert set(said) == {*ALERT_LANGUAGES, "runbook_url"}
    assert HAN.search(said["summary_zh"]) is not None
    assert not HAN.search(said["summary"] + said["description"])
    assert set(LABEL.findall(said["summary"])) == set(LABEL.findall(said["summary_zh"]))
    if rule.group != "gpuwarden-findings":
        assert HAN.search(said["description_zh"]) is not None
        assert rule.labels.get("severity") in ("warning", "critical")


def headings() -> set[str]:
    text = (ALERTS / "README.md").read_text(encoding="utf-8")
    return {title.strip().lower().replace(" ", "-") for title in re.findall(r"^#+ (.*)$", text, re.MULTILINE)}


@pytest.mark.parametrize("rule", alerts(), ids=str)
def test_its_runbook_is_there(rule: RuleText) -> None:
    where = rule.annotations["runbook_url"]
    known = {each.rule for each in (*RULES, *META_RULES)}
    if where.startswith(OWN_RUNBOOK):
        assert where.removeprefix(OWN_RUNBOOK) in headings()
        return
    anchor = where.removeprefix(RUNBOOK)
    assert anchor in known or (anchor == "{{ $labels.rule }}" and rule.group == "gpuwarden-findings")
    if anchor in known and not rule.name.startswith("Gpuwarden"):
        assert alertname(anchor) == rule.name


def test_every_exported_rule_has_one_generated_alert() -> None:
    generated = [rule.name for rule in alerts() if rule.group == "gpuwarden-findings"]
    assert generated == [alertname(rule.rule) for rule in exported_rules()]
    named = {rule.name for rule in alerts()}
    assert [rule.rule for rule in (*RULES, *META_RULES) if alertname(rule.rule) not in named] == []


def test_a_file_without_the_generated_block_is_reported() -> None:
    with pytest.raises(ValueError, match=r"findings.rules.yml has no generated block"):
        findings_rules("groups: []")


def test_expressions_are_given_to_whoever_asks_a_real_prometheus() -> None:
    given = list(expressions())
    assert {file for file, _, _ in given} == {path.name for path in RULE_FILES}
    assert len(given) == sum(1 for _ in rules())
