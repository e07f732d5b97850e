"""Text as a key and its values; `monitor.i18n` turns it into a sentence."""

from __future__ import annotations

import msgspec

from monitor.facts.base import Fact

Value = str | int | float


class Text(Fact, frozen=True):
    """One sentence: a key of the catalogs in `monitor.i18n`, and the values to fill in."""

    key: str
    values: dict[str, Value] = msgspec.field(default_factory=dict)


class Evidence(Text, frozen=True, kw_only=True):
    """One reason for a GPU state: a code and its figures."""

    key: str = msgspec.field(name="what")
    values: dict[str, Value] = msgspec.field(default_factory=dict)
