"""Steps that all builds share."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from tests.lab.errors import LabError
from tests.lab.logs import tail


def is_complete(names: Iterable[str], programs: Path) -> bool:
    """Whether all programs are in this directory."""
    return all(os.access(programs / name, os.X_OK) for name in names)


def publish(names: Iterable[str], built: Path, programs: Path) -> None:
    """Copy the built programs to `programs`, all or none."""
    incoming = programs.with_name(programs.name + ".incoming")
    shutil.rmtree(incoming, ignore_errors=True)
    incoming.mkdir(parents=True)
    for name in names:
        shutil.copy2(built / name, incoming / name)
    shutil.rmtree(programs, ignore_errors=True)
    incoming.rename(programs)


def run_logged(
    argv: Sequence[str], log: Path, limit: float, *, cwd: Path, environment: Mapping[str, str] | None = None
) -> None:
    """Run a command with its output appended to `log`; LabError with the log's end if it fails or exceeds `limit`."""
    with log.open("ab") as output:
        child = subprocess.Popen(
            argv,
            cwd=cwd,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            code = child.wait(limit)
        except BaseException as error:  # also on an interrupt: child processes must not outlive us
            os.killpg(child.pid, signal.SIGKILL)
            child.wait()
            if not isinstance(error, subprocess.TimeoutExpired):
                raise
            raise LabError(f"`{argv[0]}` took longer than {limit:g} s; the end of {log}:\n{tail(log)}") from None
    if code != 0:
        raise LabError(f"`{argv[0]}` ended with {code}; the end of {log}:\n{tail(log)}")
