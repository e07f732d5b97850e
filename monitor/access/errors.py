"""Errors of authorization."""

from __future__ import annotations

from http import HTTPStatus


class RefusedError(Exception):
    """What was asked for may not be done. The message says what would have to be different."""

    def __init__(self, status: HTTPStatus, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.retry_after = retry_after
