"""Connecting to a runtime's socket, with a clear word when that is not possible."""

from __future__ import annotations

import socket

from monitor.agent.runtime.api import EngineError, NoAnswerError, NotServedError


def dial(path: str, timeout: float | None = None) -> socket.socket:
    """Given a socket's path, return a connection. Raise NotServedError if there is no socket, else EngineError."""
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        sock.settimeout(timeout)
        sock.connect(path)
    except OSError as error:
        sock.close()
        raise explained(path, error) from error
    return sock


def explained(path: str, error: OSError) -> Exception:
    """Given what went wrong at a socket, return an error that names it and says what to do."""
    match error:
        case FileNotFoundError() | NotADirectoryError():
            return NotServedError(f"{path}: no such socket")
        case PermissionError():
            remedy = "run the agent as root or in the group that owns the socket"
            return EngineError(f"{path}: permission denied: {remedy}")
        case ConnectionRefusedError():
            return EngineError(f"{path}: nobody is listening: start the engine, or remove the socket it left behind")
        case TimeoutError():
            return NoAnswerError(f"{path}: no answer")
    return EngineError(f"{path}: {error}")
