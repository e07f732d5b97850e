"""What every answer of the API has in common."""

from __future__ import annotations

import msgspec
from starlette.responses import Response

# What is shown is true now and for nobody's cache.
NO_STORE = {"Cache-Control": "no-store"}


def json_answer(content: object, status: int = 200) -> Response:
    """Given anything that JSON can hold, return it as an answer."""
    return Response(msgspec.json.encode(content), status, NO_STORE, media_type="application/json")
