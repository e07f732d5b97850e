# ruff: noqa: RUF001  # Chinese has its own punctuation
"""The page of rules: what each means, its limits, its causes with what to do, and how it is changed or silenced."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import get_type_hints

from docs.generate.explains import explained_by
from docs.generate.settings import kind_of, written
from docs.generate.tables import code, intro, rows, table, word
from monitor.config.rules import field_name, setting_type
from monitor.detect.base import Detected, Rule, Situation
from monitor.detect.meta.monitor import OWN_RULES
from monitor.detect.rules import RULES
from monitor.i18n import CATALOGS, fields, say


@dataclasses.dataclass(frozen=True)
class NoLimits:
    """The limits of a rule that has none."""


def _not_here(_situation: Situation, _memory: object) -> Detected:
    raise NotImplementedError


def _own(name: str) -> Rule:
    """Return a rule of which nothing is known here but its words."""
    causes = (key.removeprefix(f"{name}.") for key in CATALOGS["en"] if key.startswith(f"{name}."))
    return Rule(name, NoLimits, tuple(cause for cause in causes if not cause.endswith("advice")), _not_here)


# Found by the monitor about itself, outside the rules that look at the cluster.
OWN = tuple(_own(name) for name in OWN_RULES)
COLUMNS = {"en": (0, 2, 4), "zh": (1, 3, 5)}  # of rules.tsv: meaning, severity, outage
LINES = {
    "en": {"severity": "Severity: {0}.", "outage": " From practice: {0}", "by": "Not told when this explains it: {0}."},
    "zh": {"severity": "级别：{0}。", "outage": "来自实际故障：{0}", "by": "被以下规则解释时不单独通知：{0}。"},
}
SILENCE = {
    "en": "To silence it: `gpuwarden alerts silence alertname={0} --for 2h`.",
    "zh": "静默：`gpuwarden alerts silence alertname={0} --for 2h`。",
}
LIMITS_HEAD = {"en": ("limit", "default", "meaning"), "zh": ("界限", "默认值", "含义")}
CAUSES_HEAD = {"en": ("cause", "message", "what to do"), "zh": ("原因", "消息", "处理办法")}
NOTHING = "–"


def page(lang: str) -> str:
    """Given a language, return the page."""
    index = " · ".join(f"[{rule.rule}](#{rule.rule})" for rule in (*RULES, *OWN))
    every = "".join(_section(rule, lang) for rule in (*RULES, *OWN))
    return intro("rules", lang).replace("{count}", str(len(RULES))) + f"\n{index}\n" + every


def _section(rule: Rule, lang: str) -> str:
    meaning, severity, outage = (rows("rules.tsv")[rule.rule][column] for column in COLUMNS[lang])
    said = LINES[lang]
    parts = [
        f"\n## {rule.rule}\n",
        f"**{CATALOGS[lang][f'rule.{rule.rule}']}.** {meaning}\n" if lang == "en" else _title(rule, meaning),
        f"{said['severity'].format(severity)}{said['outage'].format(outage)}\n",
        table(CAUSES_HEAD[lang], _causes(rule, lang)),
    ]
    if dataclasses.fields(rule.limits):
        parts += [table(LIMITS_HEAD[lang], _limits(rule, lang)), f"```yaml\n{_block(rule)}```\n"]
    causes = explained_by().get(rule.rule, ())
    if causes:
        parts.append(said["by"].format(", ".join(f"[{each}](#{each})" for each in causes)) + "\n")
    parts.append(SILENCE[lang].format(alertname(rule)) + "\n")
    return "\n".join(parts)


def _title(rule: Rule, meaning: str) -> str:
    return f"**{CATALOGS['zh'][f'rule.{rule.rule}']}。**{meaning}\n"


def alertname(rule: Rule) -> str:
    """Given a rule, return the name of its alerts."""
    return rule.rule.title().replace("-", "")


def _limits(rule: Rule, lang: str) -> Iterator[tuple[str, ...]]:
    for name, default in limits_of(rule):
        yield (
            code(f"daemon.rules.{field_name(rule)}.{name}"),
            code(default),
            word("limits.tsv", key_of(rule, name), lang),
        )


def key_of(rule: Rule, limit: str) -> str:
    """Given a limit of a rule, return its row in limits.tsv: its own, else one for all limits of that name."""
    own = f"{rule.rule}.{limit}"
    return own if own in rows("limits.tsv") else f"*.{limit}"


def limits_of(rule: Rule) -> Iterator[tuple[str, str]]:
    """Yield each limit of a rule with its default, as one would write it."""
    hints, defaults = get_type_hints(rule.limits, include_extras=True), rule.limits()
    for limit in dataclasses.fields(rule.limits):
        yield limit.name, written(getattr(defaults, limit.name), kind_of(setting_type(hints[limit.name])))


def _block(rule: Rule) -> str:
    lines = [f"      {name}: {_quoted(default)}" for name, default in limits_of(rule)]
    return "\n".join(["daemon:", "  rules:", f"    {field_name(rule)}:", *lines, ""])


def _quoted(default: str) -> str:
    """A pattern in a list begins with a star at times, which YAML takes for an alias."""
    return default.replace("[*", '["*').replace("*]", '*"]') if default.startswith("[*") else default


def _causes(rule: Rule, lang: str) -> Iterator[tuple[str, str, str]]:
    """Yield each cause with its message and advice; then what else the rule says, where its words have advice too."""
    words = CATALOGS["en"]
    for cause in rule.causes:
        yield (
            code(cause),
            _said(f"{rule.rule}.{cause}", lang),
            "<br>".join(_said(key, lang) for key in advice(rule, cause)),
        )
    if not rule.causes and rule.rule in words:
        yield NOTHING, _said(rule.rule, lang), _said(f"{rule.rule}.advice", lang)
    for key in sorted(words):
        what = key.removeprefix(f"{rule.rule}.").removesuffix(".advice")
        other = key == f"{rule.rule}.{what}.advice" and what not in rule.causes
        if other:
            headline = f"{rule.rule}.{what}"
            yield f"({what})", _said(headline, lang) if headline in words else NOTHING, _said(key, lang)


def advice(rule: Rule, cause: str) -> tuple[str, ...]:
    """Given a cause, return the keys of what is advised: its own, those of the explanation of the pod, the rule's."""
    words = CATALOGS["en"]
    own = (f"{rule.rule}.{cause}.advice", f"pull_{cause.replace('-', '_')}_advice")
    listed = rows("advice.tsv").get(f"{rule.rule}.{cause}", ("",))[0].split()
    found = listed or [key for key in own if key in words and (key != own[1] or rule.rule == "image-pull")]
    return tuple(found) or (f"{rule.rule}.advice",)


def _said(key: str, lang: str) -> str:
    """Given a key, return its sentence with the names of its fields in place of values."""
    return say(lang, key, {name: f"‹{name}›" for name in fields(CATALOGS[lang][key])})
