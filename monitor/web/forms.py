"""Request bodies and HTML forms, and the redirect target after one."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from urllib.parse import parse_qs

from starlette.requests import ClientDisconnect, Request

from monitor.access.errors import RequestRejectedError

FORM = "application/x-www-form-urlencoded"
MAX_FORM_BYTES = 256 * 1024  # enough for 1,000 selected pods
MAX_FIELDS = 5000
MAX_TARGET_CHARS = 2000

Form = Mapping[str, tuple[str, ...]]


async def read_form(request: Request) -> Form:
    """Fields of a form, each with all of its values. Raise RequestRejectedError."""
    if content_type(request) != FORM:
        raise RequestRejectedError(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "send a form")
    return parse_form(await read_body(request, MAX_FORM_BYTES))


async def read_body(request: Request, max_bytes: int) -> bytes:
    """Body of a request. Raise RequestRejectedError if it is too large or incomplete."""
    parts, size = [], 0
    try:
        async for part in request.stream():
            size += len(part)
            if size > max_bytes:
                raise RequestRejectedError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "request body too large")
            parts.append(part)
    except ClientDisconnect:
        raise RequestRejectedError(HTTPStatus.BAD_REQUEST, "incomplete request body") from None
    return b"".join(parts)


def parse_form(body: bytes) -> Form:
    """Fields of a form body. Raise RequestRejectedError."""
    try:
        fields = parse_qs(body.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=MAX_FIELDS)
    except (ValueError, UnicodeError):
        raise RequestRejectedError(HTTPStatus.BAD_REQUEST, "malformed form") from None
    return {name: tuple(values) for name, values in fields.items()}


def first(form: Form, name: str) -> str:
    """The first value of a field; empty if it is missing."""
    return form.get(name, ("",))[0]


def content_type(request: Request) -> str:
    """Media type of the body, without parameters."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


def local_target(target: str) -> str:
    """The target of a redirect if it is a page of this site, else the start page.

    Browsers treat two leading slashes or backslashes as another host.
    """
    local = target.startswith("/") and not target.startswith("//") and "\\" not in target
    valid = target.isprintable() and len(target) <= MAX_TARGET_CHARS and not target.startswith("/login")
    return target if local and valid else "/"
