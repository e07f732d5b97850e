"""Text of the dashboards in each language. Names that the web page shows too come from its catalogue."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import ModuleType

from dashboards.generate.words import en, zh
from monitor.i18n import CATALOGS

_MODULES: Mapping[str, ModuleType] = {"en": en, "zh": zh}
LANGUAGES = tuple(_MODULES)
_SHARED = "page."


@dataclass(frozen=True)
class Words:
    """Text of one language: (title, description) of dashboards and panels, titles of rows, and single terms."""

    lang: str
    dashboards: Mapping[str, tuple[str, str]]
    rows: Mapping[str, str]
    panels: Mapping[str, tuple[str, str]]
    terms: Mapping[str, str]


def words_of(lang: str) -> Words:
    """Text of a language; its terms include the page's names of GPU states and severities."""
    module = _MODULES[lang]
    shared = {
        key.removeprefix(_SHARED): text
        for key, text in CATALOGS[lang].items()
        if key.startswith((f"{_SHARED}state.", f"{_SHARED}severity."))
    }
    return Words(lang, module.DASHBOARDS, module.ROWS, module.PANELS, shared | module.TERMS)
