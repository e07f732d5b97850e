"""The web server and the parts of the daemon behind it, which a reload replaces."""

from __future__ import annotations

import gc
import logging
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass

from monitor.base import logs
from monitor.config.file import ConfigError
from monitor.config.root import Config
from monitor.daemon.listen import StartError
from monitor.daemon.parts import DaemonParts, access_settings, build_app, start_parts
from monitor.daemon.reload import (
    LoadConfig,
    ReloadResult,
    ReloadStatus,
    first_status,
    result_file,
    with_fixed_settings,
)
from monitor.daemon.state_lock import StateLock
from monitor.facts import NodeSnapshot
from monitor.web.context import PageExtras
from monitor.web.reloadable import ReloadableApp
from monitor.web.server import WebServer

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class SupervisorDeps:
    """What stays the same through reloads. `own_agent` and `own_node` are those of an agent in this process."""

    listening: socket.socket
    lock: StateLock
    own_agent: str | None = None
    own_node: Callable[[], NodeSnapshot] | None = None
    extras: PageExtras | None = None


class DaemonSupervisor:
    """Runs the daemon between start() and stop(); reload() restarts its parts with a new configuration."""

    def __init__(self, config: Config, deps: SupervisorDeps) -> None:
        """Start the parts and the web server. Raise StartError."""
        self._config = config
        self._deps = deps
        self._app = ReloadableApp()
        self._results = result_file(config.daemon.state)
        self._status = first_status()
        self.web = WebServer(self._app, deps.listening, access_settings(config).proxies)
        self.parts = self._start_parts(config, None)
        self.web.start()

    def reload(self, load: LoadConfig) -> None:
        """Load the configuration again and use it. An invalid one is rejected, and the old one stays in use."""
        began = time.time()
        try:
            restart = self._use(load())
        except (ConfigError, StartError) as error:
            errors = tuple(str(error).splitlines())
            log.error("configuration rejected, the old one stays in use: %s", "; ".join(errors))
            self._status = ReloadStatus(successful=False, success_at=self._status.success_at)
            self._results.save(ReloadResult(started_at=began, errors=errors))
            return
        for setting in restart:
            log.warning("%s has changed; restart the daemon to apply that", setting)
        log.info("configuration reloaded")
        self._status = ReloadStatus(successful=True, success_at=time.time())
        self._results.save(ReloadResult(started_at=began, restart=restart))

    def stop(self, before_cluster: tuple[Callable[[], None], ...] = ()) -> None:
        self.web.begin_stop()
        for stop in self.parts.stops(before_cluster=before_cluster):
            stop()
        self._deps.lock.release()
        self.web.wait_stopped()

    def _use(self, loaded: Config) -> tuple[str, ...]:
        """Restart all parts with a configuration; return the changed settings that need a restart of the process.

        Everything that must not be lost is on disk, as for kill -9. Raise StartError after restoring the old
        configuration if the new one cannot be started.
        """
        new, restart = with_fixed_settings(self._config, loaded, self._deps.own_agent is not None)
        access_settings(new)  # most of what can go wrong, before anything is stopped
        old = self.parts
        self._app.pause()
        old.drain()
        for stop in old.stops():
            stop()
        try:
            self.parts = self._start_parts(new, old)
        except StartError:
            self.parts = self._start_parts(self._config, old)
            raise
        self._config = new
        logs.set_level(new.log_level)
        gc.collect()  # connections of the old parts
        return restart

    def _start_parts(self, config: Config, old: DaemonParts | None) -> DaemonParts:
        deps = self._deps
        parts = start_parts(config, access_settings(config), deps.listening, deps.own_agent, deps.lock, old)
        try:
            app = build_app(config, parts, deps.own_node, deps.extras, lambda: self._status)
        except StartError:
            for stop in parts.stops():
                stop()
            raise
        self._app.serve(app)
        parts.elector.start()
        return parts
