"""How a dashboard is written down: the same JSON gives the same bytes."""

from __future__ import annotations

import json
from typing import Any


def text(document: dict[str, Any]) -> str:
    """Given a dashboard's JSON, return the file's content."""
    return json.dumps(document, ensure_ascii=False, indent=2) + "\n"
