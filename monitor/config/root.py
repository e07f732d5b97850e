"""Every setting of gpuwarden, its type and its default. `monitor.config.file` reads a YAML file into `Config`."""

from __future__ import annotations

import msgspec

from monitor.agent.settings import AgentSettings
from monitor.config.agent import AgentConfig
from monitor.config.daemon import DaemonConfig
from monitor.config.types import LogLevel, Section


class Config(Section):
    """The whole configuration file."""

    log_level: LogLevel = "info"
    agent: AgentConfig = AgentConfig()
    daemon: DaemonConfig = DaemonConfig()

    def agent_settings(self) -> AgentSettings:
        """Return what the agent is told. Raise ValueError if a file with a token is gone."""
        agent = self.agent
        plain = agent.model_dump(exclude={"listen", "token", "token_file", "actions"})
        plain |= {
            "listen_host": agent.listen.host,
            "listen_port": agent.listen.port,
            "token": agent.read_token(),
            "log_level": self.log_level,
            "actions": agent.actions.settings(),
        }
        return msgspec.convert(plain, AgentSettings)
