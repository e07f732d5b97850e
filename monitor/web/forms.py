"""Forms: what a browser sends of them, and which page may be gone to after one."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from urllib.parse import parse_qs

from starlette.requests import ClientDisconnect, Request

from monitor.access.errors import RequestRejectedError

FORM = "application/x-www-form-urlencoded"
MAX_FORM_BYTES = 256 * 1024  # a form with 1,000 pods that are chosen
MAX_FIELDS = 5000

Form = Mapping[str, tuple[str, ...]]


async def read_form(request: Request) -> Form:
    """Return the fields of a form, each with all of its values. Raise RefusedError."""
    if content_type(request) != FORM:
        raise RequestRejectedError(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "send a form")
    return parse_form(await read_body(request, MAX_FORM_BYTES))


async def read_body(request: Request, most: int) -> bytes:
    """Return the body of a request. Raise RefusedError when it is too large, or broken off."""
    parts, size = [], 0
    try:
        async for part in request.stream():
            size += len(part)
            if size > most:
                raise RequestRejectedError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "that is too much at once")
            parts.append(part)
    except ClientDisconnect:
        raise RequestRejectedError(HTTPStatus.BAD_REQUEST, "the request was broken off") from None
    return b"".join(parts)


def parse_form(body: bytes) -> Form:
    """Given the body of a form, return its fields. Raise RefusedError."""
    try:
        fields = parse_qs(
            body.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=MAX_FIELDS
        )  # fmt: skip
    except (ValueError, UnicodeError):
        raise RequestRejectedError(HTTPStatus.BAD_REQUEST, "this is no form that can be read") from None
    return {name: tuple(values) for name, values in fields.items()}


def first(form: Form, name: str) -> str:
    """Return the value of a field; the first, if there are several."""
    return form.get(name, ("",))[0]


def content_type(request: Request) -> str:
    """Return what kind of body a request says it has."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


def own_page(wanted: str) -> str:
    """Given where to go next, return it if that is a page of this site, else the first page.

    A browser takes two slashes at the beginning, of either kind, for another site.
    """
    ours = wanted.startswith("/") and not wanted.startswith("//") and "\\" not in wanted
    return wanted if ours and wanted.isprintable() and len(wanted) <= 2000 and wanted[:6] != "/login" else "/"
