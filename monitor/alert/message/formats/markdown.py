"""What the markdown of the Chinese group bots has in common: they know no way to escape, so look-alikes are written."""

from __future__ import annotations

import re

# Without these there is no tag, no mention, no link, no entity, no emphasis.
_LOOK_ALIKES = str.maketrans({"<": "＜", ">": "＞", "&": "＆", "[": "［", "]": "］", "*": "∗", "`": "'", "\\": "＼"})  # noqa: RUF001  # they look alike on purpose
_IN_CODE = str.maketrans({"<": "＜", "`": "'"})  # noqa: RUF001  # they look alike on purpose
_ENTITY = re.compile(r"&(?=[#\w])")
_HEADING = re.compile(r"^(\s*)#")
_ID = re.compile(r"[\w.@+-]+", re.ASCII)


def escape(text: str) -> str:
    """Given any text, return it so that it is read as text."""
    return _HEADING.sub("\\1＃", text.translate(_LOOK_ALIKES))  # noqa: RUF001  # they look alike on purpose


def escape_code(text: str) -> str:
    """Given a command, return it so that it stays a command: as little as possible is changed."""
    return _ENTITY.sub("＆", text.translate(_IN_CODE)).replace("](", "] (")  # noqa: RUF001  # they look alike on purpose


def link(text: str, url: str) -> str:
    """Return a link."""
    return f"[{text}]({url})"


def is_id(value: str | None) -> bool:
    """Return whether something can be the id of a person: whatever else it is, it is not written into a tag."""
    return value is not None and _ID.fullmatch(value) is not None
