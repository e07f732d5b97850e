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
from monitor.agent.actions.limits import HourlyBudget, PurgeLimits
from monitor.agent.actions.processes import ProcessActions
from monitor.agent.actions.runtime_images import HoldJournal
from monitor.agent.collectors.gpu_processes import GpuProcessesCollector
from monitor.agent.datasets.in_use import InUse
from monitor.agent.datasets.trash_age import TrashAges
from monitor.agent.journal import ActionJournal
from monitor.agent.procfs import read_boot_id
from monitor.agent.runtime import Runtimes
from monitor.agent.settings import AgentSettings
from monitor.base.private_files import make_private_directory
from monitor.base.signing import RequestVerifier
from monitor.base.threads import Periodic
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
AGES_INTERVAL_SECONDS = 900.0


def build_actions(settings: AgentSettings, images: Callable[[], tuple[ImageCacheFact, ...] | None]) -> ActionApi:
    """API of the agent's actions; `images` returns the collected caches. Raise OSError if state cannot be stored."""
    paths, actions, limits = settings.paths, settings.actions, settings.actions.limits
    verifier = _verifier(settings)
    make_private_directory(paths.state)
    journal = ActionJournal(os.path.join(paths.state, JOURNAL_FILE))
    runtimes = Runtimes(paths.docker_socket, paths.cri_sockets)
    on_images = ImageActions(runtimes, images, HoldJournal(journal), paths.rootfs)
    on_processes = ProcessActions(paths.proc, runtimes, GpuProcessesCollector(paths.proc).collect, limits.min_grace)
    ages = TrashAges(paths.state, read_boot_id(paths.proc))
    on_datasets = DatasetActions(
        actions.dataset_roots, paths, journal, InUse(paths.proc, paths.sys), ages, PurgeLimits(limits)
    )
    images_budget = HourlyBudget("images_per_hour", limits.images_per_hour)
    processes_budget = HourlyBudget("processes_per_hour", limits.processes_per_hour)
    datasets_budget = HourlyBudget("datasets_per_hour", limits.datasets_per_hour)
    handlers: dict[type[Action], ActionHandler] = {
        RemoveImage: images_budget.limited(lambda action, _: on_images.remove(action)),
        PruneBuildCache: lambda action, _: on_images.prune_build_cache(action),
        KillProcess: processes_budget.limited(lambda action, _: on_processes.kill(action)),
        ScanDatasets: on_datasets.scan,
        TrashUnit: datasets_budget.limited(on_datasets.trash),
        RestoreUnit: on_datasets.restore,
        PurgeTrash: on_datasets.purge,
    }
    dispatcher = ActionDispatcher(handlers, frozenset({ScanDatasets, PurgeTrash}), journal)
    dispatcher.run_before(lambda _: on_images.restore_interrupted(), RemoveImage)
    if actions.dataset_roots:
        dispatcher.run_before(on_datasets.recover, PurgeTrash, TrashUnit, RestoreUnit)
    used_ids = UsedIds(os.path.join(paths.state, USED_IDS_FILE), time.time())
    aging = Periodic("trash-ages", ages.advance, AGES_INTERVAL_SECONDS) if actions.dataset_roots else None
    return ActionApi(ActionAuthenticator(verifier, actions.per_minute, used_ids), dispatcher, aging)


def _verifier(settings: AgentSettings) -> RequestVerifier:
    """Verifier of requests to this node. Raise OSError without usable public keys."""
    try:
        return RequestVerifier(settings.node_name, settings.actions.public_keys or "")
    except ValueError as error:
        raise OSError(errno.EINVAL, f"agent.actions.public_key_file {error}") from None
