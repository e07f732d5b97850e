"""Registers the handlers of the agent's actions. Imported only where actions are enabled."""

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
from monitor.base.private_files import make_private_directory
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
    """API of the agent's actions; `images` returns the collected caches. Raise OSError if state cannot be stored."""
    paths, actions = settings.paths, settings.actions
    if not actions.token:
        raise OSError(errno.EINVAL, "agent.actions is enabled without a token")
    make_private_directory(paths.state)
    journal = ActionJournal(os.path.join(paths.state, JOURNAL_FILE))
    runtimes = Runtimes(paths.docker_socket, paths.cri_sockets)
    on_images = ImageActions(runtimes, images, HoldJournal(journal), paths.rootfs)
    on_processes = ProcessActions(paths.proc, runtimes, GpuProcessesCollector(paths.proc).collect)
    on_datasets = DatasetActions(actions.dataset_roots, paths, journal, InUse(paths.proc, paths.sys))
    handlers: dict[type[Action], ActionHandler] = {
        RemoveImage: lambda action, _: on_images.remove(action),
        PruneBuildCache: lambda action, _: on_images.prune_build_cache(action),
        KillProcess: lambda action, _: on_processes.kill(action),
        ScanDatasets: on_datasets.scan,
        TrashUnit: on_datasets.trash,
        RestoreUnit: on_datasets.restore,
        PurgeTrash: on_datasets.purge,
    }
    dispatcher = ActionDispatcher(handlers, frozenset({ScanDatasets, PurgeTrash}), journal)
    dispatcher.run_before(lambda _: on_images.restore_interrupted(), RemoveImage)
    if actions.dataset_roots:
        dispatcher.run_before(on_datasets.recover, PurgeTrash, TrashUnit, RestoreUnit)
    used_ids = UsedIds(os.path.join(paths.state, USED_IDS_FILE), time.time())
    return ActionApi(ActionAuthenticator(actions.token, actions.per_minute, used_ids), dispatcher)
