"""Teardown of a lab, including a crashed one: no processes, mounts or files remain."""

from __future__ import annotations

import shutil

from tests.lab import host
from tests.lab.components import FIRST_TO_STOP
from tests.lab.engine import Engine
from tests.lab.errors import LabError
from tests.lab.layout import Layout
from tests.lab.mounts import mounts_below, unmount_below
from tests.lab.process import marked, stop
from tests.lab.state import State, load
from tests.lab.variants import named

GRACE = 5.0
STRAY_GRACE = 1.0
ENGINE_GRACE = 15.0


def tear_down(layout: Layout) -> None:
    """Stop and remove everything; idempotent. LabError names what remains."""
    state = _state_or_none(layout)
    if state is not None:
        engine = named(state.variant).engine(layout)
        _stop_components(state, engine)
    stop(marked(layout.root), STRAY_GRACE)
    unmount_below(layout.root)
    if state is not None:
        host.restore(state.host, layout, engine.shim_sockets())
    if not mounts_below(layout.root):  # never delete through a mount: its contents do not belong to the lab
        shutil.rmtree(layout.root, ignore_errors=True)
    left = leftovers(layout, state)
    if left:
        raise LabError("the lab left behind: " + "; ".join(left))


def leftovers(layout: Layout, state: State | None) -> list[str]:
    """Remains of a lab that should be gone."""
    found = [f"process {process.pid} ({process.name})" for process in marked(layout.root)]
    found += [f"mount {point}" for point in mounts_below(layout.root)]
    if layout.root.exists():
        found.append(f"directory {layout.root}")
    return found + (host.leftovers(state.host) if state is not None else [])


def _stop_components(state: State, engine: Engine) -> None:
    stop([process for name, process in state.processes.items() if name in FIRST_TO_STOP], GRACE)
    engine.remove_containers()
    stop([process for name, process in state.processes.items() if name != engine.component], GRACE)
    # dockerd stops its containerd and unmounts its mounts, which takes some time.
    stop([process for name, process in state.processes.items() if name == engine.component], ENGINE_GRACE)


def _state_or_none(layout: Layout) -> State | None:
    """The state, None also if it is unreadable: the environment marker is enough to stop the processes."""
    try:
        return load(layout.state)
    except LabError:
        return None
