"""Label values of what others have named."""

from __future__ import annotations

from monitor.base.metrics import label

LONGEST = 253  # as long as Kubernetes allows names to be; what an annotation says of its owner may be any length


def short(text: str | int | None) -> str:
    """Return a label value of bounded length."""
    if text is None:
        return ""
    if isinstance(text, str) and text.isascii() and len(text) <= LONGEST:  # as nearly all are
        return text
    value = label(text)
    return value if len(value) <= LONGEST else value[: LONGEST - 1] + "\N{HORIZONTAL ELLIPSIS}"
