"""The sockets of this node: container runtimes and the kubelet."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from monitor.doctor.model import Verdicts, listed, not_checked, ok, problem, warning


@dataclass(frozen=True)
class SocketLook:
    """A socket. `denied`: this user may not use it; `dead`: nobody listens, or nobody answers."""

    path: str
    state: Literal["ok", "absent", "denied", "dead"]
    why: str = ""


@dataclass(frozen=True)
class RuntimeFacts:
    """The sockets of the runtimes that are configured."""

    sockets: tuple[SocketLook, ...]


@dataclass(frozen=True)
class KubeletFacts:
    """The kubelet of this node. `devices` is how many it says are in use; None if it could not be asked, and why."""

    socket: str
    present: bool = False
    has_socket: bool = False
    has_checkpoint: bool = False
    devices: int | None = None
    why: str = ""


def judge_runtimes(facts: RuntimeFacts) -> Verdicts:
    """Given the sockets, return which cannot be used."""
    there = [socket for socket in facts.sockets if socket.state != "absent"]
    if not there:
        paths = listed([socket.path for socket in facts.sockets])
        return (warning("runtimes.none", paths=paths),) if paths else (not_checked("runtimes.not-configured"),)
    wrong = [problem(f"runtimes.{each.state}", path=each.path, why=each.why) for each in there if each.state != "ok"]
    return tuple(wrong) or (ok("runtimes.ok", paths=listed([socket.path for socket in there])),)


def judge_kubelet(facts: KubeletFacts) -> Verdicts:
    """Given the kubelet, return whether it says which pod has which card."""
    if not facts.present:
        return (not_checked("kubelet.none"),)
    if facts.devices is not None:
        return (ok("kubelet.ok", count=facts.devices),)
    if facts.has_socket:
        return (problem("kubelet.silent", socket=facts.socket, why=facts.why),)
    if facts.has_checkpoint:
        return (warning("kubelet.checkpoint", socket=facts.socket),)
    return (problem("kubelet.no-socket", socket=facts.socket),)
