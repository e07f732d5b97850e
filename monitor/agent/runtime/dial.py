"""Connections to the sockets of runtimes, with errors that name the remedy."""

from __future__ import annotations

import math
import socket
import time

from monitor.agent.runtime.api import EngineError, NoAnswerError, NotServedError
from monitor.base.deadline_socket import DeadlineSocket


def dial(path: str, timeout: float = math.inf) -> DeadlineSocket:
    """Connection to a unix socket that may be used for `timeout` seconds.

    Raise NotServedError if the socket does not exist, EngineError on any other failure.
    """
    sock = DeadlineSocket(socket.AF_UNIX, socket.SOCK_STREAM)
    sock.deadline = time.monotonic() + timeout
    try:
        sock.connect(path)
    except OSError as error:
        sock.close()
        raise explain_socket_error(path, error) from error
    return sock


def explain_socket_error(path: str, error: OSError) -> Exception:
    """Error that names the socket and the remedy."""
    match error:
        case FileNotFoundError() | NotADirectoryError():
            return NotServedError(f"{path}: no such socket")
        case PermissionError():
            remedy = "run the agent as root or in the group that owns the socket"
            return EngineError(f"{path}: permission denied: {remedy}")
        case ConnectionRefusedError():
            return EngineError(f"{path}: connection refused: start the engine, or remove its stale socket")
        case TimeoutError():
            return NoAnswerError(f"{path}: no answer")
    return EngineError(f"{path}: {error}")
