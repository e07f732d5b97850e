"""Connections to the sockets of runtimes, with errors that name the remedy."""

from __future__ import annotations

import socket

from monitor.agent.runtime.api import EngineError, NoAnswerError, NotServedError


def dial(path: str, timeout: float | None = None) -> socket.socket:
    """Connection to a unix socket. Raise NotServedError if it does not exist, EngineError on any other failure."""
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        sock.settimeout(timeout)
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
