"""The whole configuration; `monitor.config.file` loads it."""

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
        """Settings of the agent. Raise ValueError if a token file is unreadable."""
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
