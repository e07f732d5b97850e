"""A test server on its own thread for the duration of a `with` block."""

from __future__ import annotations

import socketserver
import threading
from types import TracebackType
from typing import Self


class Serving:
    """Serves between `__enter__` and `__exit__`; blocking handlers also wait for `closing`."""

    def __init__(self, server: socketserver.BaseServer, beat: float = 0.02) -> None:
        self.closing = threading.Event()
        self._serving = server
        self._thread = threading.Thread(target=server.serve_forever, args=(beat,), daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.closing.set()
        self._serving.shutdown()
        self._serving.server_close()
        self._thread.join(60)
