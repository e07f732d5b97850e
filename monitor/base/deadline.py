"""Work that talks to somebody else and has to end by a deadline, whatever the other side does.

Time-outs of client libraries limit the silence between two bytes, and nothing limits looking up a name. So the work is
done in a thread of its own; when its time is over, its connection is broken off and nobody waits for it any longer.
"""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

T = TypeVar("T")


class Lifeline:
    """The connections of some work, for breaking them off from outside."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._handles: list[socket.socket] = []
        self._cut = False

    def hold(self, sock: socket.socket) -> None:
        """Given a connection that was just made, remember it. Raise ConnectionAbortedError if time is over already."""
        with self._lock:
            if self._cut:
                raise ConnectionAbortedError("given up")
            # A handle of our own: what TLS is put upon gives its number away and cannot be broken off any more.
            self._handles.append(socket.socket(fileno=os.dup(sock.fileno())))

    def cut(self) -> None:
        """Break off what there is, and let nothing be begun any more: a message that is late is sent by a retry."""
        with self._lock:
            self._cut = True
            for handle in self._handles:
                with suppress(OSError):  # not connected any more
                    handle.shutdown(socket.SHUT_RDWR)

    def release(self) -> None:
        """Forget all connections: the work is done."""
        with self._lock:
            for handle in self._handles:
                handle.close()
            self._handles.clear()


def within(limit: float, work: Callable[[Lifeline], T]) -> T:
    """Given work, return what it returns, and raise what it raises. Raise TimeoutError after `limit` seconds."""
    line, results, failures = Lifeline(), list[T](), list[BaseException]()

    def run() -> None:
        try:
            results.append(work(line))
        except BaseException as error:  # whatever it is, it is for who asked
            failures.append(error)
        finally:
            line.release()

    thread = threading.Thread(target=run, name="outgoing", daemon=True)
    thread.start()
    thread.join(limit)
    if results:
        return results[0]
    if failures:
        raise failures[0]
    line.cut()
    raise TimeoutError
