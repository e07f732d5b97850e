"""What the dashboards say, in each language. Words that gpuwarden's own page has are taken from there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import ModuleType

from dashboards.generate.words import en, zh
from monitor.i18n import CATALOGS

_MODULES: Mapping[str, ModuleType] = {"en": en, "zh": zh}
LANGUAGES = tuple(_MODULES)


@dataclass(frozen=True)
class Words:
    """The words of one language. A word that is missing is a KeyError: nothing is shown half translated."""

    lang: str
    dashboards: Mapping[str, tuple[str, str]]
    rows: Mapping[str, str]
    panels: Mapping[str, tuple[str, str]]
    terms: Mapping[str, str]

    def said(self, term: str) -> str:
        """Return a term: of a column, a legend, a variable or a value."""
        return self.terms[term]

    def state(self, state: str) -> str:
        """Return the word for a GPU's state."""
        return CATALOGS[self.lang][f"page.state.{state}"]

    def severity(self, severity: str) -> str:
        """Return the word for a severity."""
        return CATALOGS[self.lang][f"page.severity.{severity}"]


def words_of(lang: str) -> Words:
    """Given a language, return its words. Raise KeyError for one that there is not."""
    module = _MODULES[lang]
    return Words(lang, module.DASHBOARDS, module.ROWS, module.PANELS, module.TERMS)
