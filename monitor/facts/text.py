"""Text as a key and its values; `monitor.i18n` turns it into a sentence."""

from __future__ import annotations

import msgspec

from monitor.facts.base import Fact

Value = str | int | float


class Text(Fact, frozen=True):
    """One sentence: a key of the catalogs in `monitor.words`, and the values that go into it."""

    key: str
    values: dict[str, Value] = msgspec.field(default_factory=dict)


class Evidence(Text, frozen=True, kw_only=True):
    """One reason for a state: an enumerated word, and the figures that go with it, ready to be put into a sentence."""

    key: str = msgspec.field(name="what")
    values: dict[str, Value] = msgspec.field(default_factory=dict)
