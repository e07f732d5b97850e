"""Keys of actions in files, as a daemon and its agents have them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from monitor.base.signing import RequestSigner, generate_keys


@dataclass(frozen=True)
class ActionKeys:
    """Files of a pair of keys."""

    private_file: Path
    public_file: Path

    def signer(self) -> RequestSigner:
        return RequestSigner(self.private_file.read_text())

    def agent_actions(self, more: str = "") -> str:
        """Settings `agent.actions`, in YAML."""
        return f"{{enabled: true, public_key_file: {self.public_file}{more}}}"


def write_keys(directory: Path) -> ActionKeys:
    """Create a pair of keys in a directory."""
    keys, pair = ActionKeys(directory / "action-private-key", directory / "action-public-key"), generate_keys()
    directory.mkdir(parents=True, exist_ok=True)
    keys.private_file.write_text(pair.private)
    keys.private_file.chmod(0o600)
    keys.public_file.write_text(pair.public)
    return keys
