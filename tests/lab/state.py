"""What a running lab has to remember, in one file that is always whole."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from tests.lab.errors import LabError
from tests.lab.host import HostRecord
from tests.lab.ports import Ports
from tests.lab.process import Process


class State(msgspec.Struct, kw_only=True):
    """A lab: what it listens on, what it has started, and what of the machine it found how."""

    ports: Ports
    token: str
    gpu_ids: tuple[str, ...]
    host: HostRecord
    # The test run that has to stop it; None if it runs until somebody says `down`.
    owner: Process | None = None
    processes: dict[str, Process] = {}


def save(state: State, path: Path) -> None:
    """Write the state. A reader sees the old one or the new one, never half of it."""
    incoming = path.with_name(path.name + ".incoming")
    incoming.write_bytes(msgspec.json.format(msgspec.json.encode(state)))
    incoming.chmod(0o600)
    os.replace(incoming, path)


def load(path: Path) -> State | None:
    """Return the state, None if there is no lab. Raise LabError if the file is no lab's."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=State)
    except FileNotFoundError:
        return None
    except msgspec.DecodeError as error:
        raise LabError(f"{path} is not the state of a lab: {error}") from None
