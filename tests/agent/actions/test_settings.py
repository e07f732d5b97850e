"""Settings of actions, and what a read-only agent does not load."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
from pydantic import ValidationError

from monitor.agent.settings import AgentSettings
from monitor.config.root import Config
from tests.agent.actions.requests_sent import KEYS


def settings(tmp_path: Path, **actions: Any) -> AgentSettings:
    agent = {"listen": "127.0.0.1:0", "paths": {"state": str(tmp_path / "state")}, "actions": actions}
    return Config.model_validate({"agent": agent}).agent_settings()


def test_nothing_is_done_unless_told() -> None:
    actions = Config().agent_settings().actions
    assert (actions.enabled, actions.public_keys, actions.per_minute, actions.dataset_roots) == (False, None, 60, ())
    assert (actions.limits.min_trash, actions.limits.min_grace) == (86400.0, 10.0)


def test_what_is_written_reaches_the_agent(tmp_path: Path) -> None:
    (tmp_path / "key").write_text(f"# of the daemon\n{KEYS.public}\n")
    tls = {"cert_file": "/a.pem", "key_file": "/a.key", "client_ca_file": "/ca.pem"}
    given = settings(
        tmp_path, enabled=True, public_key_file=str(tmp_path / "key"), per_minute=5, dataset_roots=["/mnt/share"],
        tls=tls, limits={"min_trash": "3d", "purge_bytes_per_hour": "1TiB"},
    )  # fmt: skip
    assert msgspec.json.decode(msgspec.json.encode(given), type=AgentSettings) == given
    actions = given.actions
    assert (actions.per_minute, actions.dataset_roots) == (5, ("/mnt/share",))
    assert KEYS.public in (actions.public_keys or "")
    assert (actions.limits.min_trash, actions.limits.purge_bytes_per_hour) == (3 * 86400.0, 1 << 40)
    assert actions.tls is not None
    assert actions.tls.client_ca_file == "/ca.pem"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"enabled": True}, "is enabled without a key; write public_key_file: /etc/gpuwarden/action-public-key"),
        ({"enabled": True, "public_key_file": "/nonexistent"}, "cannot read '/nonexistent'"),
        ({"limits": {"images_per_hour": 0}}, "greater than or equal to 1"),
        ({"per_minute": 0}, "greater than or equal to 1"),
        ({"dataset_roots": ["mnt"]}, "not an absolute path"),
        ({"dataset_roots": ["/"]}, "belongs to the system"),
        ({"dataset_roots": ["/home"]}, "belongs to the system"),
        ({"dataset_roots": ["/var/lib"]}, "belongs to the system"),
        ({"dataset_roots": ["/usr/share/data"]}, "belongs to the system"),
        ({"dataset_roots": ["/mnt/../etc"]}, "without . and .."),
        ({"dataset_roots": ["/mnt/share/"]}, "without / at its end"),
        ({"dataset_roots": ["/mnt/share", "/mnt/share/li"]}, "'/mnt/share/li' is inside '/mnt/share'"),
        ({"tls": {"cert_file": "/a"}}, "key_file"),
        ({"allow": True}, "allow"),
    ],
)
def test_what_is_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError) as refused:
        Config.model_validate({"agent": {"token": "reading", "actions": given}})
    assert message in str(refused.value)


@pytest.mark.parametrize(("enabled", "loaded"), [(False, False), (True, True)])
def test_an_agent_that_only_reads_does_not_pay_for_actions(tmp_path: Path, enabled: bool, loaded: bool) -> None:
    (tmp_path / "key").write_text(KEYS.public)
    given = settings(tmp_path, enabled=enabled, public_key_file=str(tmp_path / "key"))
    program = (
        "import sys, threading, msgspec\n"
        "from monitor.agent.settings import AgentSettings\nfrom monitor.agent import main\n"
        f"agent = main.RunningAgent(msgspec.json.decode({msgspec.json.encode(given)!r}, type=AgentSettings))\n"
        "print(any(name.startswith('monitor.agent.actions') for name in sys.modules))\n"
        "assert 'nacl' not in sys.modules, 'it is loaded with the first signature'\n"
        "print(any('act-' in thread.name for thread in threading.enumerate()), agent.snapshot().actions.enabled)\n"
        "agent.stop()"
    )
    output = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout
    assert output.split() == [str(loaded)] * 2 + [str(enabled)]
