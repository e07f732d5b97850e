"""A network namespace with one agent, and a virtual cable to it that can be cut."""

from __future__ import annotations

import secrets
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from tests.support import need


@dataclass(frozen=True)
class Cable:
    """A veth pair with addresses that no other machine can reach.

    `unplug` is noticed immediately, `drop` only by timeouts, as behind a broken switch.
    """

    name: str
    here: str
    there: str

    def inside(self, line: Sequence[str]) -> list[str]:
        """Command line that runs a command in the namespace."""
        return ["nsenter", f"--net=/run/netns/{self.name}", *line]

    def unplug(self) -> None:
        _run("ip", "link", "set", self.name, "down")

    def drop(self) -> None:
        _run(*self.inside(["iptables", "-A", "INPUT", "-i", "far", "-j", "DROP"]))

    def plug(self) -> None:
        """Undo `unplug` and `drop`."""
        _run(*self.inside(["iptables", "-F", "INPUT"]))
        _run("ip", "link", "set", self.name, "up")


@contextmanager
def cable() -> Iterator[Cable]:
    """A cable between this machine and a temporary namespace."""
    tools = all(shutil.which(tool) for tool in ("ip", "iptables", "nsenter"))
    need(tools, "ip, iptables and nsenter (Debian: iproute2, iptables, util-linux)")
    net = f"10.213.{secrets.randbelow(256)}"  # distinct for parallel runs on one machine
    made = Cable(f"gw-{secrets.token_hex(3)}", f"{net}.1", f"{net}.2")
    with ExitStack() as undo:
        _run("ip", "netns", "add", made.name)
        undo.callback(_run, "ip", "netns", "del", made.name)  # removes both ends
        _run("ip", "link", "add", made.name, "type", "veth", "peer", "name", "far", "netns", made.name)
        _run("ip", "addr", "add", f"{made.here}/30", "dev", made.name)
        _run("ip", "link", "set", made.name, "up")
        for line in (f"ip addr add {made.there}/30 dev far", "ip link set far up", "ip link set lo up"):
            _run(*made.inside(line.split()))
        yield made


def _run(*line: str) -> None:
    subprocess.run(line, check=True, capture_output=True, timeout=60)
