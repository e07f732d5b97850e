"""What every answer of the API has in common."""

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus
from typing import TYPE_CHECKING, TypeVar

import msgspec
from starlette.responses import Response

from monitor.i18n import LANGUAGES

if TYPE_CHECKING:
    from starlette.requests import Request

T = TypeVar("T")

# What is shown is true now and for nobody's cache.
NO_STORE = {"Cache-Control": "no-store"}


def json_response(content: object, status: int = 200) -> Response:
    """Given anything that JSON can hold, return it as an answer."""
    return Response(msgspec.json.encode(content), status, NO_STORE, media_type="application/json")


def respond(ask: Callable[[], object], status: int = HTTPStatus.OK) -> Response:
    """Return what is asked for as an answer, or in which way the question was wrong."""
    try:
        return json_response(ask(), status)
    except ValueError as error:
        return json_response({"error": str(error)}, HTTPStatus.BAD_REQUEST)


def decode_body(body: bytes, form: type[T]) -> T:
    """Given a body, return what it says. Raise ValueError if it is something else."""
    try:
        return msgspec.json.decode(body, type=form)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise ValueError(f"this is not what belongs here: {error}") from None


def language_of(request: Request) -> str:
    """Return the language in which somebody wants the answer. Raise ValueError if it is none of ours."""
    lang = request.query_params.get("lang", "en")
    if lang not in LANGUAGES:
        raise ValueError("lang is en or zh")
    return lang


def limit_of(request: Request, usual: int, most: int) -> int:
    """Return how many rows somebody wants. Raise ValueError if that is not a number up to the most that there are."""
    text = request.query_params.get("limit", str(usual))
    if not text.isdecimal() or len(text) > len(str(most)) or not 0 < int(text) <= most:
        raise ValueError(f"limit is a number from 1 to {most}")
    return int(text)
