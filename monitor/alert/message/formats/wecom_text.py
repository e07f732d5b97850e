"""Plain text as the group bots of WeCom show it: it knows links in angle brackets. Who is mentioned is said apart."""

from __future__ import annotations

from dataclasses import replace

from monitor.alert.message.formats import plain


def _escape(text: str) -> str:
    return text.replace("<", "＜")  # noqa: RUF001  # they look alike on purpose


MARKUP = replace(plain.MARKUP, escape=_escape)
