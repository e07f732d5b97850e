# ruff: noqa: E501  # messages are quoted whole, as they were seen
from __future__ import annotations

import ast
import dataclasses
import fnmatch
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

import monitor.detect
from monitor.detect.base import Rule, RuleMetadata
from monitor.detect.meta import META_RULES
from monitor.detect.rules import RULES
from monitor.explain.keys import Key
from monitor.facts.findings import LABELS
from monitor.i18n import CATALOGS, LANGUAGES, en, fields, say, zh
from monitor.job_results.notices import RULES as JOB_RESULTS

EXPLAINED = [key.value for key in Key]
ALL_KEYS = sorted(CATALOGS["en"])


def _modules(catalog: ModuleType, prefix: str) -> tuple[str, ...]:
    return tuple(name for name in vars(catalog) if name.startswith(prefix))


PARTS = (
    (
        "WORDS",
        (
            "queues",
            "nodes",
            "scheduling",
            "device_claims",
            "images",
            "starting",
            "crashes",
            "log_tails",
            "running",
            "fits",
        ),
    ),
    ("FINDINGS", _modules(en, "findings_")),
    ("ALERTS", ("alerts", "job_results")),
)
# Chinese strings without Chinese characters: punctuation and names.
ALIKE = {"list_comma", "alert.list", "alert.title", "alert.place", "alert.symptom-examples"}
ALIKE |= {"label.gpu", "label.pod", "external", "page.comma", "page.pod", "page.evidence.xid", "page.waiting.wants"}
ALIKE |= {"incident.titled", "incident.remark", "page.colon"}
ALIKE |= {"demo.scene", "demo.says", "page.guide.body"}
ALIKE |= {
    "table.pod",
    "table.pods",
    "table.GPU",
    "table.gpu",
    "table.id",
    "table.inodes %",
    "table.titled",
    "top.state",
    "source.resource",
    "source.resource-with-details",
    "tables.plan-warning",
    "tables.by",
    "tables.clause",
}


@pytest.mark.parametrize("module", [en, zh])
def test_every_key_of_an_explanation_and_no_other(module: ModuleType) -> None:
    assert sorted(module.WORDS) == sorted(EXPLAINED)
    assert module.WORDS.keys() & module.FINDINGS.keys() == set()
    assert (module.WORDS | module.FINDINGS).keys() & module.ALERTS.keys() == set()


def test_both_languages_have_the_same_keys() -> None:
    assert sorted(CATALOGS["zh"]) == ALL_KEYS


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.rule)
def test_every_cause_of_every_rule_has_a_headline(rule: Rule) -> None:
    wanted = {f"{rule.rule}.{cause}" for cause in rule.causes}
    assert wanted - set(ALL_KEYS) == set()
    assert any(key.startswith(rule.rule) for key in ALL_KEYS)


@pytest.mark.parametrize("rule", [*RULES, *META_RULES], ids=lambda rule: rule.rule)
def test_every_rule_is_documented(rule: RuleMetadata) -> None:
    wanted = {f"doc.{rule.rule}{part}" for part in ("", ".severity", ".incident")}
    assert wanted - set(ALL_KEYS) == set()
    limits = {field.name for field in dataclasses.fields(rule.limits)}
    own = {name for name in limits if f"doc.{rule.rule}.limit.{name}" in ALL_KEYS}
    assert {name for name in limits - own if f"doc.limit.{name}" not in ALL_KEYS} == set()
    used = wanted | {f"doc.{rule.rule}.limit.{name}" for name in own}
    assert {key for key in ALL_KEYS if key.startswith(f"doc.{rule.rule}.")} <= used


def test_every_description_is_that_of_a_rule_or_limit() -> None:
    names = {rule.rule for rule in (*RULES, *META_RULES)} | {"limit"}
    assert {key for key in ALL_KEYS if key.startswith("doc.") and key.split(".")[1] not in names} == set()
    shared = {key.removeprefix("doc.limit.") for key in ALL_KEYS if key.startswith("doc.limit.")}
    assert shared <= {field.name for rule in RULES for field in dataclasses.fields(rule.limits)}


def test_every_rule_and_every_label_has_a_name() -> None:
    rules = {rule.rule for rule in (*RULES, *META_RULES)}
    rules |= {"cleanup-report", "cleanup-announced", "cleanup-notice", *JOB_RESULTS}
    wanted = {f"rule.{rule}" for rule in rules} | {f"label.{name}" for name in LABELS}
    assert {key for key in ALL_KEYS if key.startswith(("rule.", "label."))} == wanted


def test_a_name_of_a_rule_fits_into_a_title() -> None:
    named = [(lang, key) for lang in LANGUAGES for key in ALL_KEYS if key.startswith("rule.")]
    assert [each for each in named if len(CATALOGS[each[0]][each[1]]) > 40] == []
    for lang in LANGUAGES:
        titles = [CATALOGS[lang][key] for each, key in named if each == lang]
        assert len(set(titles)) == len(titles)


@pytest.mark.parametrize(
    "module", sorted(Path(monitor.detect.__file__).parent.rglob("*.py")), ids=lambda path: path.stem
)
@pytest.mark.parametrize("lang", LANGUAGES)
def test_every_key_that_is_written_out_in_a_detector_exists(lang: str, module: Path) -> None:
    assert _missing_keys(module.read_text(encoding="utf-8"), CATALOGS[lang]) == []


@pytest.mark.parametrize("rule", [*RULES, *META_RULES], ids=lambda rule: rule.rule)
@pytest.mark.parametrize("lang", LANGUAGES)
def test_all_advice_that_a_rule_declares_exists(lang: str, rule: RuleMetadata) -> None:
    assert {key for keys in rule.advice.values() for key in keys} - CATALOGS[lang].keys() == set()


@pytest.mark.parametrize(
    ("source", "missing"),
    [
        ('Text("done")', []),
        ('Text("no-such-key")', ["no-such-key"]),
        ('Text(key="no-such-key")', ["no-such-key"]),
        ('make_finding(NAME, cause, labels, key="no-such-key", advice=())', ["no-such-key"]),
        ('make_finding(NAME, cause, labels, advice_key="disk-filling.advice")', []),
        ('make_finding(NAME, cause, labels, advice_key="disk-filling.advise")', ["disk-filling.advise"]),
        ('lib.gpu_finding(NAME, cause, advice_key="gpu-phantom.advise")', ["gpu-phantom.advise"]),
        ('NAME = "gpu-fragmented"\nf(advice_key=f"{NAME}.moves.advice")', []),
        ('NAME = "gpu-fragmented"\nf(advice_key=f"{NAME}.move.advice")', ["gpu-fragmented.move.advice"]),
        ('f(advice_key=f"service-down.{cause}.advice")', []),
        ('f(advice_key=f"service-down.{cause}.advise")', ["service-down.*.advise"]),
        ('f(advice_key="shm-pressure.advice" if small else "shm-pressure.advise")', ["shm-pressure.advise"]),
        ("f(advice_key=advice_key)", []),
    ],
)
def test_a_key_that_is_missing_is_found(source: str, missing: list[str]) -> None:
    assert _missing_keys(source, CATALOGS["en"]) == missing


def _missing_keys(source: str, catalog: Mapping[str, str]) -> list[str]:
    """Keys of texts, headlines and advice in a module that the catalog lacks, with `*` for what is not a constant."""
    tree = ast.parse(source)
    constants = {
        target.id: node.value.value
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    keys = [_key_pattern(branch, constants) for key in _written_keys(tree) for branch in _branches(key)]
    return [key for key in keys if key.strip("*") and not fnmatch.filter(catalog, key)]


def _written_keys(tree: ast.Module) -> Iterator[ast.expr]:
    """Expressions of keys of texts, of the headlines of findings and of their advice."""
    for node in ast.walk(tree):
        name = getattr(node.func, "id", "") if isinstance(node, ast.Call) else ""
        if isinstance(node, ast.Call):
            named = ("key", "advice_key") if name in ("Text", "make_finding") else ("advice_key",)
            yield from (keyword.value for keyword in node.keywords if keyword.arg in named)
            yield from node.args[:1] if name == "Text" else ()


def _branches(key: ast.expr) -> Iterator[ast.expr]:
    """Both values of a conditional expression, else the expression."""
    for branch in (key.body, key.orelse) if isinstance(key, ast.IfExp) else ():
        yield from _branches(branch)
    if not isinstance(key, ast.IfExp):
        yield key


def _key_pattern(key: ast.expr, constants: Mapping[str, str]) -> str:
    if isinstance(key, ast.Constant):
        return str(key.value)
    if isinstance(key, ast.JoinedStr):
        return "".join(_key_pattern(part, constants) for part in key.values)
    if isinstance(key, ast.FormattedValue):
        return _key_pattern(key.value, constants)
    return constants.get(key.id, "*") if isinstance(key, ast.Name) else "*"


def test_the_same_fields_in_both() -> None:
    english, chinese = CATALOGS["en"], CATALOGS["zh"]
    assert [key for key in ALL_KEYS if fields(english[key]) != fields(chinese[key])] == []


@pytest.mark.parametrize(("catalog", "names"), PARTS)
@pytest.mark.parametrize("module", [en, zh])
def test_no_file_of_a_catalog_overrides_another(module: ModuleType, catalog: str, names: tuple[str, ...]) -> None:
    parts = [getattr(module, name).WORDS for name in names]
    assert sum(len(part) for part in parts) == len(getattr(module, catalog))


def test_languages_are_not_mixed_up() -> None:
    chinese = {key for key, text in CATALOGS["zh"].items() if any("一" <= letter <= "鿿" for letter in text)}
    assert [key for key in ALL_KEYS if not CATALOGS["en"][key].isascii()] == []
    assert set(ALL_KEYS) - chinese == ALIKE


def test_a_sentence_is_short_enough_to_be_read() -> None:
    assert [key for key in ALL_KEYS if len(CATALOGS["en"][key]) > 330 or len(CATALOGS["zh"][key]) > 200] == []


@pytest.mark.parametrize("value", [0, 1, 2, 1.5, -3, 10**15, "?", "a\x1b[31m\nb"])
@pytest.mark.parametrize("lang", LANGUAGES)
def test_any_number_and_any_text_fits(lang: str, value: str | float) -> None:
    said = {key: say(lang, key, dict.fromkeys(fields(text), value)) for key, text in CATALOGS[lang].items()}
    assert [key for key, text in said.items() if not text.isprintable()] == []


SENTENCES: list[tuple[str, str, str, dict[str, str | int | float], str]] = [
    ("one", "en", "refused_times", {"count": 1, "kind": "Job"}, "Its controller (Job) tried 1 time."),
    ("many", "en", "refused_times", {"count": 2, "kind": "Job"}, "Its controller (Job) tried 2 times."),
    ("none is many", "en", "refused_times", {"count": 0, "kind": "Job"}, "Its controller (Job) tried 0 times."),
    ("Chinese has no plural", "zh", "refused_times", {"count": 2, "kind": "Job"}, "它的控制器（Job）已尝试 2 次。"),
    ("a duration", "en", "for_seconds", {"seconds": 185.2}, "for 3 min 5 s"),
    ("a duration in Chinese", "zh", "for_seconds", {"seconds": 185.2}, "已 3 分钟 5 秒"),
    ("bytes", "en", "memory_limit", {"limit": 16 * 1024**3}, "Its memory limit is 16 GiB."),
    ("a share", "en", "gpu_use", {"ratio": 0.05, "size": 0}, "GPU: 5% busy, 0 B of its memory used."),
    ("braces of JSON", "en", "workload_inactive_advice", {"workload": "w", "namespace": "n"}, """Switch it on: kubectl patch workload w -n n --type=merge -p '{"spec":{"active":true}}'"""),
    ("braces in a value are just text", "en", "scheduler_says", {"message": "taint {k: v}, {0} {x}"}, "The scheduler says: taint {k: v}, {0} {x}"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "lang", "key", "values", "expect"), SENTENCES, ids=[s[0] for s in SENTENCES])
def test_say(name: str, lang: str, key: str, values: dict[str, str | int | float], expect: str) -> None:
    assert say(lang, key, values) == expect


@pytest.mark.parametrize(("lang", "key"), [("en", "no_such_key"), ("tlh", "done"), ("en", "scheduler_says")])
def test_what_is_missing_is_an_error(lang: str, key: str) -> None:
    with pytest.raises(KeyError):
        say(lang, key, {})


@given(st.text())
def test_a_value_never_breaks_a_line(text: str) -> None:
    assert say("en", "scheduler_says", {"message": text}).isprintable()
