"""Listening sockets, and URLs of the servers behind them."""

from __future__ import annotations

import errno
import socket

from monitor.base.net import connect_host, is_wildcard
from monitor.config import file as config_file
from monitor.config.types import Listen


class StartError(Exception):
    """Startup failed; the message is one sentence that says what to change."""

    exit_code = 1


def page_url(address: tuple[str, int]) -> str:
    """URL of a server for a browser on this machine."""
    host, port = address
    return f"http://{Listen(host=connect_host(host), port=port)}/"


def linked_url(listening: socket.socket) -> str:
    """URL of the page for links in notifications, which are opened on other machines."""
    host, port = listening.getsockname()[:2]
    return f"http://{Listen(host=socket.gethostname() if is_wildcard(host) else host, port=port)}"


def open_socket(listen: Listen, setting: str) -> socket.socket:
    """Socket listening on the address of a setting. Raise StartError."""
    family = socket.AF_INET6 if ":" in listen.host else socket.AF_INET
    both = listen.host == "::" and socket.has_dualstack_ipv6()
    try:
        return socket.create_server((listen.host, listen.port), family=family, dualstack_ipv6=both)
    except OSError as error:
        raise StartError(listen_error(error, listen, setting)) from None


def listen_error(error: OSError, listen: Listen, setting: str) -> str:
    """One sentence for the user: why the address cannot be listened on, and which setting to change."""
    reasons = {
        errno.EADDRINUSE: f"{listen} is already in use; stop the program that uses it, or",
        errno.EACCES: f"this user may not listen on {listen};",
        errno.EADDRNOTAVAIL: f"this machine has no address {listen.host};",
        socket.EAI_NONAME: f"the name {listen.host} has no address;",
    }
    reason = reasons.get(error.errno or 0, f"cannot listen on {listen}: {error.strerror};")
    variable = config_file.PREFIX + setting.replace(".", "__").upper()
    return f"{reason} set {setting} (or the variable {variable}) to another host:port"
