"""Which actions an agent has, and what each is given. Only imported where actions are enabled."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable

from monitor.agent.actions.api import ActionApi
from monitor.agent.actions.auth import ActionAuthenticator, UsedIds
from monitor.agent.actions.datasets import DatasetActions
from monitor.agent.actions.dispatcher import ActionDispatcher, ActionHandler
from monitor.agent.actions.images import ImageActions
from monitor.agent.actions.processes import ProcessActions
from monitor.agent.actions.runtime_images import HoldJournal
from monitor.agent.collectors.gpu_processes import GpuProcessesCollector
from monitor.agent.datasets.in_use import InUse
from monitor.agent.journal import ActionJournal
from monitor.agent.runtime import Runtimes
from monitor.agent.settings import AgentSettings
from monitor.facts import ImageCacheFact
from monitor.facts.actions import (
    Action,
    KillProcess,
    PruneBuildCache,
    PurgeTrash,
    RemoveImage,
    RestoreUnit,
    ScanDatasets,
    TrashUnit,
)

JOURNAL_FILE, USED_IDS_FILE = "actions.journal", "actions.used"


def build_actions(settings: AgentSettings, images: Callable[[], tuple[ImageCacheFact, ...] | None]) -> ActionApi:
    """Given settings and how to ask when images were used, return who answers. Raise OSError if nothing can be kept."""
    paths, own = settings.paths, settings.actions
    if not own.token:
        raise OSError(errno.EINVAL, "agent.actions is enabled without a token")
    os.makedirs(paths.state, mode=0o700, exist_ok=True)
    journal = ActionJournal(os.path.join(paths.state, JOURNAL_FILE))
    runtimes = Runtimes(paths.docker_socket, paths.cri_sockets)
    on_images = ImageActions(runtimes, images, HoldJournal(journal), paths.rootfs)
    on_processes = ProcessActions(paths.proc, runtimes, GpuProcessesCollector(paths.proc).collect)
    on_datasets = DatasetActions(own.dataset_roots, paths, journal, InUse(paths.proc, paths.sys))
    handlers: dict[type[Action], ActionHandler] = {
        RemoveImage: lambda action, _: on_images.remove(action),
        PruneBuildCache: lambda action, _: on_images.prune_build_cache(action),
        KillProcess: lambda action, _: on_processes.kill(action),
        ScanDatasets: on_datasets.scan,
        TrashUnit: on_datasets.trash,
        RestoreUnit: on_datasets.restore,
        PurgeTrash: on_datasets.purge,
    }
    desk = ActionDispatcher(handlers, frozenset({ScanDatasets, PurgeTrash}), journal)
    desk.first(lambda _: on_images.put_back_left_behind(), RemoveImage)
    if own.dataset_roots:
        desk.first(on_datasets.recover, PurgeTrash, TrashUnit, RestoreUnit)
    used = UsedIds(os.path.join(paths.state, USED_IDS_FILE), time.time())
    return ActionApi(ActionAuthenticator(own.token, own.per_minute, used), desk)
