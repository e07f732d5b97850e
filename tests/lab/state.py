"""Persistent state of a running lab, in one atomically replaced file."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from tests.lab.errors import LabError
from tests.lab.host import HostRecord
from tests.lab.ports import Ports
from tests.lab.process import Process


class State(msgspec.Struct, kw_only=True):
    """A lab: its ports, its processes, and the recorded state of the machine."""

    variant: str
    ports: Ports
    token: str
    gpu_ids: tuple[str, ...]
    host: HostRecord
    # The test run that must stop it; None if it runs until `down`.
    owner: Process | None = None
    processes: dict[str, Process] = {}


def save(state: State, path: Path) -> None:
    """Write the state atomically."""
    incoming = path.with_name(path.name + ".incoming")
    incoming.write_bytes(msgspec.json.format(msgspec.json.encode(state)))
    incoming.chmod(0o600)
    os.replace(incoming, path)


def load(path: Path) -> State | None:
    """The state, None without a lab; LabError if the file has another format."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=State)
    except FileNotFoundError:
        return None
    except msgspec.DecodeError as error:
        raise LabError(f"{path} is not the state of a lab: {error}") from None
