"""Request bodies and HTML forms, and the redirect target after one."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping
from http import HTTPStatus
from urllib.parse import parse_qs

from starlette.requests import ClientDisconnect, Request

from monitor.access.errors import RequestRejectedError

FORM = "application/x-www-form-urlencoded"
MAX_FORM_BYTES = 256 * 1024  # enough for 1,000 selected pods
MAX_BODIES_BYTES = 64 * 1024 * 1024  # of all requests that are not answered yet
MAX_FIELDS = 5000
MAX_TARGET_CHARS = 2000

Form = Mapping[str, tuple[str, ...]]


class BodyMemory:
    """The memory of request bodies, bounded for all requests together."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._bytes = 0

    def hold(self, count: int) -> None:
        """Count bytes until the current request is answered. Raise RequestRejectedError if there are too many."""
        with self._lock:
            if self._bytes + count > MAX_BODIES_BYTES:
                raise RequestRejectedError(HTTPStatus.SERVICE_UNAVAILABLE, "too many large requests at once", 1.0)
            self._bytes += count
        task = asyncio.current_task()
        assert task is not None
        task.add_done_callback(lambda _: self._release(count))

    def _release(self, count: int) -> None:
        with self._lock:
            self._bytes -= count


BODY_MEMORY = BodyMemory()


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
            BODY_MEMORY.hold(len(part))
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
