"""How the daemon has agents act: the settings of `daemon.cleanup.agents`."""

from __future__ import annotations

from monitor.base.peer_http import PeerTls
from monitor.cleanup.execute.agent_client import Access
from monitor.config.types import SecretSection, Span


class ActingConfig(SecretSection):
    """The token is the one of `agent.actions` on the nodes, and not the one of their pages."""

    limit: Span = Access.limit

    def access(self, token: str | None, tls: PeerTls | None) -> Access:
        """Return how agents are asked; `token` is used where none is given here. Raise ValueError if a file is gone."""
        return Access(self.read_token() or token, self.limit, tls)
