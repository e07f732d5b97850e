"""Errors of access control."""

from __future__ import annotations

from http import HTTPStatus


class RequestRejectedError(Exception):
    """A request is rejected with an HTTP status. The message says what the client has to change."""

    def __init__(self, status: HTTPStatus, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.retry_after = retry_after
