"""`gpuwarden demo`: the real daemon on a simulated cluster with an outage of every kind within minutes."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from monitor.base.private_files import replace_file
from monitor.base.signing import generate_keys
from monitor.config.root import Config
from monitor.config.types import Listen
from monitor.sim.simulation import Simulation
from monitor.sim.wecom import KEY

# Half an hour in a real cluster is seconds here.
RULES = {
    "gpu_idle": {"warm_up": "5s", "warning_after": "30s", "notebook_warning_after": "30s"},
    "gpu_zombie": {"finished_after": "10s"},
    "pod_pending": {"waiting": "15s"},
    "service_down": {"after": "5s"},
    "agent_silent": {"silent_after": "20s"},
}
# Images are cleaned up as soon as the disk is too full, without the usual day of notice.
POLICIES = [
    {"kind": "images", "name": "node-images", "mode": "enforce", "high": "80%", "low": "60%", "announce": "0s"},
    {"kind": "pods", "name": "finished-pods", "cron": "0 3 * * *"},
]
KEY_FILE = "action-private-key"


def run_demo(
    run: Callable[[Config, str], int], nodes: int, listen: Listen, lang: str, say: Callable[[str], None]
) -> int:
    """Run a daemon on a simulated cluster, and return the exit code.

    `run` takes the configuration and the URL of the simulated WeCom group.
    """
    simulation = Simulation(nodes)
    simulation.start()
    try:
        with tempfile.TemporaryDirectory(prefix="gpuwarden-demo-") as directory:
            config = Config.model_validate(settings(simulation, Path(directory), listen, lang))
            say(f"simulating a cluster of {nodes} nodes; the first outage begins within seconds")
            robot = f"http://127.0.0.1:{simulation.robot_port}/"
            say(f"page     http://{listen}/")
            say(f"WeCom    {robot}   messages of the group robot")
            variables = f"GPUWARDEN_DAEMON__LISTEN={listen} GPUWARDEN_DAEMON__STATE={config.daemon.state}"
            say(f"command  {variables} gpuwarden alerts list")
            return run(config, robot)
    finally:
        simulation.stop()


def settings(simulation: Simulation, directory: Path, listen: Listen, lang: str) -> dict[str, Any]:
    """Configuration of a daemon for the simulated cluster."""
    robot = f"http://127.0.0.1:{simulation.robot_port}/cgi-bin/webhook/send?key={KEY}"
    return {
        "log_level": "warning",
        "daemon": {
            "listen": str(listen),
            "state": str(directory / "state"),
            "cycle": "2s",
            "kubernetes": {"enabled": "yes", "kubeconfig": str(simulation.kubeconfig(directory))},
            "agents": {"port": simulation.agents_port, "interval": "2s"},
            "gpu": {"idle_after": "20s", "settle": "5s", "stale_after": "20s"},
            "services": [
                {
                    "name": "portal",
                    "url": f"http://127.0.0.1:{simulation.portal_port}/",
                    "interval": "2s",
                    "limit": "2s",
                }
            ],
            "rules": RULES,
            "cleanup": {"agents": {"private_key_file": _new_key(directory)}, "policies": POLICIES},
            "alerts": {
                "language": lang,
                "cluster": "demo",
                "receivers": [{"name": "ops", "kind": "wecom", "url": robot}],
                "owners": {user: {"wecom": user} for user in ("zhang", "li", "wang", "zhao", "chen", "liu")},
            },
        },
    }


def _new_key(directory: Path) -> str:
    """Path of a new private key for actions; simulated agents accept any signature."""
    path = str(directory / KEY_FILE)
    replace_file(path, generate_keys().private.encode())
    return path
