"""All user-facing text, in each language. Pure.

A catalog maps a key to a template with named fields. A field may specify its format: `{age:duration}`,
`{size:bytes}`, `{share:percent}`, `{cause:code}` for a cause or state, `{needs:gpus}` and `{needs:free-gpus}` for
GPUs or shares of them (`monitor.facts.gpu_requests`), and in languages with plurals `{count:node|nodes}`.
"""

from __future__ import annotations

from collections.abc import Mapping
from string import Formatter

from monitor.i18n import en, zh
from monitor.i18n.figures import duration, number, percent, size
from monitor.i18n.gpus import free_gpus, gpus
from monitor.i18n.zh.codes import CODES

Value = str | int | float
CATALOGS: Mapping[str, Mapping[str, str]] = {
    "en": en.WORDS
    | en.FINDINGS
    | en.ALERTS
    | en.CLEANUP
    | en.REPORT
    | en.ACCESS
    | en.PAGE
    | en.DOCTOR
    | en.SETUP
    | en.TABLES,
    "zh": zh.WORDS
    | zh.FINDINGS
    | zh.ALERTS
    | zh.CLEANUP
    | zh.REPORT
    | zh.ACCESS
    | zh.PAGE
    | zh.DOCTOR
    | zh.SETUP
    | zh.TABLES,
}
_GPUS = {"gpus": gpus, "free-gpus": free_gpus}
LANGUAGES = tuple(CATALOGS)


def say(lang: str, key: str, values: Mapping[str, Value]) -> str:
    """Text of a key with its values filled in. Raise KeyError for an unknown key."""
    return _Sentence(lang).vformat(CATALOGS[lang][key], (), values)


def code(lang: str, word: str) -> str:
    """Name of a cause, state or outcome. English uses the code itself. The only cause of a rule may have its name."""
    return CODES.get(word) or CATALOGS[lang].get(f"rule.{word}", word) if lang == "zh" else word


def fields(template: str) -> frozenset[str]:
    """Names of the fields of a template."""
    return frozenset(name for _, name, _, _ in Formatter().parse(template) if name is not None)


class _Sentence(Formatter):
    """Fills in a template by the rules of one language. Values are untrusted: none of them may break a line."""

    def __init__(self, lang: str) -> None:
        self._lang = lang

    def format_field(self, value: Value, format_spec: str) -> str:
        if format_spec in _GPUS:
            value, format_spec = _GPUS[format_spec](value, self._lang), ""
        if isinstance(value, str):
            value = code(self._lang, value) if format_spec == "code" else value
            text = value if value.isprintable() else "".join(c if c.isprintable() else " " for c in value)
            return f"{text} {format_spec.rpartition('|')[2]}" if "|" in format_spec else text
        if "|" in format_spec:
            one, _, many = format_spec.partition("|")
            return f"{number(value)} {one if value == 1 else many}"
        written = {"duration": lambda: duration(value, self._lang), "bytes": lambda: size(value)}
        written |= {"percent": lambda: percent(value), "": lambda: number(value), "code": lambda: number(value)}
        return written[format_spec]()
