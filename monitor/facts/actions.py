"""Wire format of the guarded actions that the daemon requests from an agent, and of their results.

An action carries the state of its target at planning time so that the agent can re-check it. An agent never touches
anything that the action does not name.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import msgspec

from monitor.facts.base import LONG_LIST, SHORT_LIST, BoundedFloat, BoundedInt, BoundedText, Fact, Identifier


class Action(Fact, frozen=True, kw_only=True, tag_field="kind"):
    """Base of the actions; `kind` on the wire identifies the type."""


class RemoveImage(Action, frozen=True, kw_only=True, tag="remove-image"):
    """Remove an unused image from a runtime's cache, with all its names.

    `names` are the names at planning time: an image that has gained another name since is kept. `keep_names` are those
    that pods or templates of the cluster reference. `protect_stopped` keeps images of stopped containers,
    `protect_local` those not known to be in any registry.
    """

    runtime: Identifier
    image_id: Identifier
    names: tuple[BoundedText, ...] = ()
    keep_names: tuple[BoundedText, ...] = ()
    pins: tuple[BoundedText, ...] = ()
    min_age_seconds: BoundedFloat
    protect_stopped: bool = True
    protect_local: bool = True


class PruneBuildCache(Action, frozen=True, kw_only=True, tag="prune-build-cache"):
    """Remove build cache that has been unused for `unused_seconds`."""

    runtime: Identifier
    unused_seconds: BoundedFloat


class KillProcess(Action, frozen=True, kw_only=True, tag="kill-process"):
    """End a process that holds a GPU and belongs to no pod: TERM, then KILL. `started_at` guards against pid reuse."""

    pid: BoundedInt
    started_at: BoundedFloat
    gpu: Identifier
    grace_seconds: BoundedFloat = 10.0


class ScanDatasets(Action, frozen=True, kw_only=True, tag="scan-datasets"):
    """Measure the units below an allow-listed root. `pattern` is relative to it: `*/datasets/*`."""

    root: BoundedText
    pattern: BoundedText
    files: bool = False
    entries_per_second: BoundedInt | None = None


class TrashUnit(Action, frozen=True, kw_only=True, tag="trash-unit"):
    """Move a unit to the trash of its root if it is unchanged since the scan: same inode, nothing newer, unused."""

    root: BoundedText
    path: BoundedText
    device: int
    inode: int
    newest: BoundedFloat
    policy: Identifier


class RestoreUnit(Action, frozen=True, kw_only=True, tag="restore-unit"):
    """Move a unit from the trash back to its original path."""

    root: BoundedText
    trash_id: Identifier


class PurgeTrash(Action, frozen=True, kw_only=True, tag="purge-trash"):
    """Permanently delete trash entries of a root that are older than `older_than_seconds`."""

    root: BoundedText
    older_than_seconds: BoundedFloat


AnyAction = RemoveImage | PruneBuildCache | KillProcess | ScanDatasets | TrashUnit | RestoreUnit | PurgeTrash


class ActionRequest(Fact, frozen=True, kw_only=True):
    """One action. `id` is valid once, and only between `issued_at` and `expires_at`."""

    id: Identifier
    issued_at: BoundedFloat
    expires_at: BoundedFloat
    policy: Identifier
    plan: Identifier
    action: AnyAction


class ActionState(StrEnum):
    """Progress of an action."""

    RUNNING = "running"
    DONE = "done"
    REFUSED = "refused"
    FAILED = "failed"


class ActionFact(Fact, frozen=True, kw_only=True):
    """Result of an action. `outcome` is a code: removed, killed, trashed, in-use, pinned, changed, gone, ..."""

    id: Identifier
    kind: Identifier
    state: ActionState
    started_at: BoundedFloat
    finished_at: BoundedFloat | None = None
    outcome: Identifier | None = None
    message: BoundedText | None = None
    freed_bytes: BoundedInt | None = None
    progress: Annotated[dict[Identifier, BoundedInt], SHORT_LIST] = msgspec.field(default_factory=dict)
    result: Annotated[dict[Identifier, msgspec.Raw], SHORT_LIST] = msgspec.field(default_factory=dict)


class ActionsFact(Fact, frozen=True, kw_only=True):
    """Whether an agent executes actions, and counts of those requested since it started. In the snapshot.

    `done` and `failed` count by `kind/outcome`; actions that the re-check declined are in `done`. `refused` counts
    rejected requests by reason: signature, token, node, replayed, expired, too-many, malformed, disabled.
    """

    enabled: bool
    done: Annotated[dict[Identifier, BoundedInt], LONG_LIST] = msgspec.field(default_factory=dict)
    failed: Annotated[dict[Identifier, BoundedInt], LONG_LIST] = msgspec.field(default_factory=dict)
    refused: Annotated[dict[Identifier, BoundedInt], SHORT_LIST] = msgspec.field(default_factory=dict)
    refused_at: BoundedFloat | None = None
    running: Annotated[tuple[Identifier, ...], LONG_LIST] = ()
