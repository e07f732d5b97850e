"""JSON responses, request bodies and query parameters of the API."""

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

NO_STORE = {"Cache-Control": "no-store"}


def json_response(content: object, status: int = 200) -> Response:
    """A response with JSON content."""
    return Response(msgspec.json.encode(content), status, NO_STORE, media_type="application/json")


def error_response(error: object, status: int) -> Response:
    """A response with an error message."""
    return json_response({"error": str(error)}, status)


def respond(query: Callable[[], object], status: int = HTTPStatus.OK) -> Response:
    """The result of a query; 400 if it raises ValueError."""
    try:
        return json_response(query(), status)
    except ValueError as error:
        return error_response(error, HTTPStatus.BAD_REQUEST)


def decode_body(body: bytes, form: type[T]) -> T:
    """Decode a JSON body. Raise ValueError if it does not match the type."""
    try:
        return msgspec.json.decode(body, type=form)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise ValueError(f"invalid request body: {error}") from None


def language_of(request: Request) -> str:
    """The query parameter `lang`. Raise ValueError if it is not supported."""
    lang = request.query_params.get("lang", "en")
    if lang not in LANGUAGES:
        raise ValueError("lang is en or zh")
    return lang


def limit_of(request: Request, default: int, maximum: int) -> int:
    """The query parameter `limit`. Raise ValueError if it is not a number up to the maximum."""
    text = request.query_params.get("limit", str(default))
    if not text.isdecimal() or len(text) > len(str(maximum)) or not 0 < int(text) <= maximum:
        raise ValueError(f"limit is a number from 1 to {maximum}")
    return int(text)
