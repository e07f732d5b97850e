"""systemd units and the compose file: valid, and as restricted as documented."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from monitor.config.file import load
from tests.deploy.helm import REPOSITORY
from tests.support import need

UNITS = REPOSITORY / "deploy" / "systemd"
# What both services are denied, each on its own: the exposure is a sum in which one of these is lost.
CLOSED = {
    "LockPersonality=yes", "NoNewPrivileges=yes", "ProtectClock=yes", "ProtectControlGroups=yes",
    "ProtectHostname=yes", "ProtectKernelModules=yes", "ProtectKernelTunables=yes", "ProtectSystem=strict",
    "RestrictNamespaces=yes", "RestrictRealtime=yes", "RestrictSUIDSGID=yes", "SystemCallArchitectures=native",
    "UMask=0077",
}  # fmt: skip
COMPOSE = REPOSITORY / "deploy" / "compose.yaml"


@pytest.fixture
def units(tmp_path: Path) -> list[Path]:
    """The units with this environment's program instead of the installed one."""
    need(shutil.which("systemd-analyze") is not None, "systemd-analyze")
    program = str(Path(sys.executable).with_name("gpuwarden"))
    for unit in UNITS.glob("*.service"):
        (tmp_path / unit.name).write_text(unit.read_text().replace("/opt/gpuwarden/bin/gpuwarden", program))
    return sorted(tmp_path.glob("*.service"))


def analyze(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["systemd-analyze", "--no-pager", *arguments], capture_output=True, text=True, timeout=300, check=False
    )


def test_systemd_understands_the_units(units: list[Path]) -> None:
    done = analyze("verify", *map(str, units))
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(("name", "most"), [("gpuwarden-agent", 40), ("gpuwarden-daemon", 20)])
def test_the_services_are_closed(units: list[Path], name: str, most: int) -> None:
    """Exposure of at most this many of 100 points; an ordinary service has 96."""
    (unit,) = [each for each in units if each.stem == name]
    done = analyze("security", "--offline=true", f"--threshold={most}", str(unit))
    assert done.returncode == 0, done.stdout[-200:]
    assert CLOSED - set(unit.read_text().splitlines()) == set()


def test_every_capability_of_the_agent_is_explained() -> None:
    text = (UNITS / "gpuwarden-agent.service").read_text()
    (given,) = re.findall(r"^CapabilityBoundingSet=(.+)$", text, re.MULTILINE)
    explained = re.findall(r"^# (CAP_\w+)  ", text, re.MULTILINE)
    assert given.split() == explained


def services() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(COMPOSE.read_text())["services"]
    return found


def test_the_composed_settings_are_ones_that_gpuwarden_takes() -> None:
    for name in ("agent", "daemon"):
        environ = {key: re.sub(r"\$\{.*\}", "", value) for key, value in services()[name]["environment"].items()}
        load(None, environ)


def test_composed_services_have_no_more_rights_than_they_need() -> None:
    agent, daemon = services()["agent"], services()["daemon"]
    assert agent["cap_drop"] == daemon["cap_drop"] == ["ALL"]
    assert agent["cap_add"] == ["SYS_PTRACE", "DAC_READ_SEARCH", "SYSLOG"]
    assert "cap_add" not in daemon
    assert agent["pid"] == "host"
    assert agent["read_only"] is daemon["read_only"] is True
    assert all("no-new-privileges:true" in each["security_opt"] for each in (agent, daemon))
    assert agent["volumes"][0]["read_only"] is True
