"""Sockets whose operations together must end by a deadline; the timeout of a socket limits each of them."""

from __future__ import annotations

import math
import socket
import time
from typing import Any


class DeadlineSocket(socket.socket):
    """A socket with a deadline by the monotonic clock."""

    deadline = math.inf

    def connect(self, address: Any) -> None:
        self.limit()
        super().connect(address)

    def sendall(self, data: Any, flags: int = 0) -> None:
        self.limit()
        super().sendall(data, flags)

    def recv_into(self, buffer: Any, nbytes: int | None = None, flags: int = 0) -> int:
        self.limit()
        return super().recv_into(buffer, nbytes or 0, flags)

    def limit(self) -> None:
        """Set the timeout of the next operation to the time that is left. Raise TimeoutError if there is none."""
        left = self.deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        self.settimeout(None if math.isinf(left) else left)
