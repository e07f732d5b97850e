"""Translates messages that many validators write in English: clause by clause, from a table. Pure.

Fields of a template stand for values that stay as they are, except for two: `{rest}` is translated, too, and the
commas of `{choices}` are those of the language.
"""

from __future__ import annotations

import re
from functools import lru_cache

from monitor.i18n.zh import errors as zh

SEPARATORS = {"zh": zh.SEPARATOR}
TABLES = {"zh": zh.PHRASES}
REST, CHOICES = "rest", "choices"
MAX_TRANSLATED_CHARS = 1500
_MAX_DEPTH = 4
_LIST_SEPARATOR = re.compile(r", (?:or )?| or ")
_FIELD = re.compile(r"\{(\w+)\}")
_Table = tuple[tuple[re.Pattern[str], str], ...]


def translated(message: str, lang: str) -> str:
    """The message in a language; one with a clause that the table does not know stays English."""
    if lang not in TABLES or len(message) > MAX_TRANSLATED_CHARS:
        return message
    return "\n".join(_translated(line, lang, 0) for line in message.split("\n"))


def _translated(message: str, lang: str, depth: int) -> str:
    whole = _match(message, lang, depth)
    if whole is not None:
        return whole
    clauses = message.split("; ")
    known = [text for clause in clauses if (text := _match(clause, lang, depth)) is not None]
    return SEPARATORS[lang].join(known) if len(known) == len(clauses) else message


def _match(message: str, lang: str, depth: int) -> str | None:
    """The translation by the first template that the whole message matches."""
    for pattern, text in _table(lang):
        found = pattern.fullmatch(message)
        if found is not None:
            return _filled(text, found.groupdict(), lang, depth)
    return None


def _filled(text: str, values: dict[str, str], lang: str, depth: int) -> str:
    if REST in values and depth < _MAX_DEPTH:
        values[REST] = _translated(values[REST], lang, depth + 1)
    if CHOICES in values:
        values[CHOICES] = _LIST_SEPARATOR.sub("、", values[CHOICES])
    return _FIELD.sub(lambda field: values[field[1]], text)


@lru_cache(maxsize=2)
def _table(lang: str) -> _Table:
    """Compiled templates."""
    return tuple((_pattern(english), text) for english, text in TABLES[lang])


def _pattern(template: str) -> re.Pattern[str]:
    """What a template matches."""
    parts = _FIELD.split(template)  # text and names of fields, in turn
    inner = (re.escape(part) if number % 2 == 0 else _field(part) for number, part in enumerate(parts))
    return re.compile("".join(inner))


def _field(name: str) -> str:
    """What a field matches: a part of one clause, or any text if it is translated itself."""
    return f"(?P<{name}>.+)" if name == REST else f"(?P<{name}>(?:(?!; ).)+?)"
