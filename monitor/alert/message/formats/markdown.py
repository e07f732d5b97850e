"""Markdown of the Chinese group bots: it has no escape syntax, so special characters become look-alikes."""

from __future__ import annotations

import re

# Without these there can be neither tags nor mentions, links, entities or emphasis.
_LOOK_ALIKES = str.maketrans({"<": "＜", ">": "＞", "&": "＆", "[": "［", "]": "］", "*": "∗", "`": "'", "\\": "＼"})  # noqa: RUF001  # look-alikes
_IN_CODE = str.maketrans({"<": "＜", "`": "'"})  # noqa: RUF001  # look-alikes
_ENTITY = re.compile(r"&(?=[#\w])")
_HEADING = re.compile(r"^(\s*)#")
_ID = re.compile(r"[\w.@+-]+", re.ASCII)


def escape(text: str) -> str:
    """Text without markup."""
    return _HEADING.sub("\\1＃", text.translate(_LOOK_ALIKES))  # noqa: RUF001  # look-alikes


def escape_code(text: str) -> str:
    """Command for a code span, changed as little as possible so that it can be copied."""
    return _ENTITY.sub("＆", text.translate(_IN_CODE)).replace("](", "] (")  # noqa: RUF001  # look-alikes


def link(text: str, url: str) -> str:
    """Markdown link."""
    return f"[{text}]({url})"


def is_id(value: str | None) -> bool:
    """Whether a value may be a user id; anything else must not be written into a tag."""
    return value is not None and _ID.fullmatch(value) is not None
