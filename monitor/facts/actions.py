"""What the daemon asks an agent to do, and what became of it: the wire format of the agent's guarded actions.

Each action carries what the plan knew of its target, so that the agent can see that it still is so. What an action
does not name is never touched.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

from monitor.facts.base import BoundedFloat, BoundedInt, Fact


class Action(Fact, frozen=True, kw_only=True, tag_field="kind"):
    """Base of the actions; on the wire, `kind` says which one it is."""


class RemoveImage(Action, frozen=True, kw_only=True, tag="remove-image"):
    """Remove an image from a runtime's cache, all its names, if nobody needs it at that moment.

    `names` are those that the plan knew: an image that has got another one meanwhile is kept. `keep_names` are those
    that pods or templates of the cluster name. `protect_stopped` keeps images of containers that do not run,
    `protect_local` those that no registry is known to have.
    """

    runtime: str
    image_id: str
    names: tuple[str, ...] = ()
    keep_names: tuple[str, ...] = ()
    pins: tuple[str, ...] = ()
    min_age_seconds: BoundedFloat
    protect_stopped: bool = True
    protect_local: bool = True


class PruneBuildCache(Action, frozen=True, kw_only=True, tag="prune-build-cache"):
    """Remove what builds left behind and nobody used for so long."""

    runtime: str
    unused_seconds: BoundedFloat


class KillProcess(Action, frozen=True, kw_only=True, tag="kill-process"):
    """End a process that holds a card and belongs to no pod: TERM, then KILL. Another start time is another process."""

    pid: BoundedInt
    started_at: BoundedFloat
    gpu: str
    grace_seconds: BoundedFloat = 10.0


class ScanDatasets(Action, frozen=True, kw_only=True, tag="scan-datasets"):
    """Measure the units below an allow-listed root. `pattern` is relative to it: `*/datasets/*`."""

    root: str
    pattern: str
    files: bool = False
    entries_per_second: BoundedInt | None = None


class TrashUnit(Action, frozen=True, kw_only=True, tag="trash-unit"):
    """Move a unit into the trash of its root, if it still is what the scan saw: same inode, nothing newer, unused."""

    root: str
    path: str
    device: int
    inode: int
    newest: BoundedFloat
    policy: str


class RestoreUnit(Action, frozen=True, kw_only=True, tag="restore-unit"):
    """Put a unit back from the trash to where it was."""

    root: str
    trash_id: str


class PurgeTrash(Action, frozen=True, kw_only=True, tag="purge-trash"):
    """Delete for good what has been in the trash of a root for so long."""

    root: str
    older_than_seconds: BoundedFloat


AnyAction = RemoveImage | PruneBuildCache | KillProcess | ScanDatasets | TrashUnit | RestoreUnit | PurgeTrash


class ActionRequest(Fact, frozen=True, kw_only=True):
    """One action. `id` is used once; before `issued_at` and after `expires_at` it is refused."""

    id: str
    issued_at: BoundedFloat
    expires_at: BoundedFloat
    policy: str
    plan: str
    action: AnyAction


class ActionState(StrEnum):
    """How far an action is."""

    RUNNING = "running"
    DONE = "done"
    REFUSED = "refused"
    FAILED = "failed"


class ActionFact(Fact, frozen=True, kw_only=True):
    """What became of an action. `outcome` is a word: removed, killed, trashed, in-use, pinned, changed, gone, ..."""

    id: str
    kind: str
    state: ActionState
    started_at: BoundedFloat
    finished_at: BoundedFloat | None = None
    outcome: str | None = None
    message: str | None = None
    freed_bytes: BoundedInt | None = None
    progress: dict[str, BoundedInt] = msgspec.field(default_factory=dict)
    result: dict[str, msgspec.Raw] = msgspec.field(default_factory=dict)


class ActionsFact(Fact, frozen=True, kw_only=True):
    """Whether an agent acts at all, and what it was asked for since it started. In the snapshot.

    `done` and `failed` count by `kind/outcome`, what was refused by the re-check among the done; `refused` what was
    turned away, by reason: token, replayed, expired, too-many, malformed, disabled.
    """

    enabled: bool
    done: dict[str, BoundedInt] = msgspec.field(default_factory=dict)
    failed: dict[str, BoundedInt] = msgspec.field(default_factory=dict)
    refused: dict[str, BoundedInt] = msgspec.field(default_factory=dict)
    refused_at: BoundedFloat | None = None
    running: tuple[str, ...] = ()
