"""By what the dashboards are known: uids that stay the same, and the tag that they share."""

from __future__ import annotations

TAG = "gpuwarden"


def uid(name: str, lang: str) -> str:
    """Given a dashboard's name and a language, return its uid."""
    return f"{TAG}-{name}" if lang == "en" else f"{TAG}-{name}-{lang}"
