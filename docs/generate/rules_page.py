# ruff: noqa: RUF001  # Chinese has its own punctuation
"""The page of rules: meaning, causes with advice, limits, and how to change or silence each rule."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import get_type_hints

from docs.generate.settings import kind_of, written
from docs.generate.tables import code, intro, table
from monitor.alert.model import alertname
from monitor.config.rules import field_name, setting_type
from monitor.detect.base import Rule, RuleMetadata
from monitor.detect.meta import META_RULES
from monitor.detect.rules import RULES
from monitor.i18n import CATALOGS, fields, say

ALL_RULES: tuple[RuleMetadata, ...] = (*RULES, *META_RULES)
TITLE = {"en": "**{0}.** {1}\n", "zh": "**{0}。**{1}\n"}
SEVERITY = {"en": "Severity: {0}. From practice: {1}\n", "zh": "级别：{0}。来自实际故障：{1}\n"}
SUPPRESSED = {"en": "Not told when this explains it: {0}.\n", "zh": "被以下规则解释时不单独通知：{0}。\n"}
SILENCE = {
    "en": "To silence it: `gpuwarden alerts silence alertname={0} --for 2h`.\n",
    "zh": "静默：`gpuwarden alerts silence alertname={0} --for 2h`。\n",
}
LIMITS_HEAD = {"en": ("limit", "default", "meaning"), "zh": ("界限", "默认值", "含义")}
CAUSES_HEAD = {"en": ("cause", "message", "what to do"), "zh": ("原因", "消息", "处理办法")}
NOTHING = "–"


def page(lang: str) -> str:
    """The page in a language."""
    index = " · ".join(f"[{rule.rule}](#{rule.rule})" for rule in ALL_RULES)
    sections = "".join(_section(rule, lang) for rule in ALL_RULES)
    return intro("rules", lang).replace("{count}", str(len(RULES))) + f"\n{index}\n" + sections


def _section(rule: RuleMetadata, lang: str) -> str:
    text, key = CATALOGS[lang], f"doc.{rule.rule}"
    parts = [
        f"\n## {rule.rule}\n",
        TITLE[lang].format(text[f"rule.{rule.rule}"], text[key]),
        SEVERITY[lang].format(text[f"{key}.severity"], text[f"{key}.incident"]),
        table(CAUSES_HEAD[lang], _causes(rule, lang)),
    ]
    if isinstance(rule, Rule):
        parts += [table(LIMITS_HEAD[lang], _limits(rule, lang)), f"```yaml\n{_block(rule)}```\n"]
    if rule.suppressed_by:
        parts.append(SUPPRESSED[lang].format(", ".join(f"[{name}](#{name})" for name in rule.suppressed_by)))
    parts.append(SILENCE[lang].format(alertname(rule.rule)))
    return "\n".join(parts)


def _limits(rule: Rule, lang: str) -> Iterator[tuple[str, ...]]:
    for name, default in limits_of(rule):
        path = f"daemon.rules.{field_name(rule)}.{name}"
        yield code(path), code(default), CATALOGS[lang][limit_key(rule, name)]


def limit_key(rule: RuleMetadata, limit: str) -> str:
    """Catalogue key of a limit's description: the rule's own, else the shared one."""
    own = f"doc.{rule.rule}.limit.{limit}"
    return own if own in CATALOGS["en"] else f"doc.limit.{limit}"


def limits_of(rule: Rule) -> Iterator[tuple[str, str]]:
    """Each limit with its default as it is written in the configuration."""
    hints, defaults = get_type_hints(rule.limits, include_extras=True), rule.limits()
    for limit in dataclasses.fields(rule.limits):
        yield limit.name, written(getattr(defaults, limit.name), kind_of(setting_type(hints[limit.name])))


def _block(rule: Rule) -> str:
    lines = [f"      {name}: {_quoted(default)}" for name, default in limits_of(rule) if default != "None"]
    return "\n".join(["daemon:", "  rules:", f"    {field_name(rule)}:", *lines, ""])


def _quoted(default: str) -> str:
    """Quote list items that begin with a star, which YAML takes for an alias."""
    return default.replace("[*", '["*').replace("*]", '*"]') if default.startswith("[*") else default


def _causes(rule: RuleMetadata, lang: str) -> Iterator[tuple[str, str, str]]:
    """Each cause with its headline and advice, then further headlines that have advice of their own."""
    keys = CATALOGS["en"]
    for cause in rule.causes:
        advice = "<br>".join(_text(key, lang) for key in advice_keys(rule, cause))
        yield code(cause), _text(f"{rule.rule}.{cause}", lang), advice
    if not rule.causes and rule.rule in keys:
        yield NOTHING, _text(rule.rule, lang), _text(f"{rule.rule}.advice", lang)
    for key in sorted(keys):
        headline = key.removesuffix(".advice")
        name = headline.removeprefix(f"{rule.rule}.")
        if key == f"{rule.rule}.{name}.advice" and name not in rule.causes:
            yield f"({name})", _text(headline, lang) if headline in keys else NOTHING, _text(key, lang)


def advice_keys(rule: RuleMetadata, cause: str) -> tuple[str, ...]:
    """Catalogue keys of the advice for a cause."""
    own = f"{rule.rule}.{cause}.advice"
    return rule.advice.get(cause) or (own if own in CATALOGS["en"] else f"{rule.rule}.advice",)


def _text(key: str, lang: str) -> str:
    """The text of a key, with field names in place of values."""
    return say(lang, key, {name: f"‹{name}›" for name in fields(CATALOGS[lang][key])})
