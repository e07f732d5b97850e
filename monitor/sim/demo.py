"""`gpuwarden demo`: the real daemon on a simulated cluster in which everything goes wrong within minutes."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from monitor.config.root import Config
from monitor.config.types import Listen
from monitor.sim.simulation import Simulation
from monitor.sim.wecom import KEY

# What takes half an hour in a real cluster takes seconds here.
RULES = {
    "gpu_idle": {"warm_up": "5s", "warning_after": "30s", "notebook_warning_after": "30s"},
    "gpu_zombie": {"finished_after": "10s"},
    "pod_pending": {"waiting": "15s"},
    "service_down": {"after": "5s"},
    "agent_silent": {"silent_after": "20s"},
}
# What fills a disk is cleaned up as soon as it is too full. Nobody waits for a day to see that.
POLICIES = [
    {"kind": "images", "name": "node-images", "mode": "enforce", "high": "80%", "low": "60%", "announce": "0s"},
    {"kind": "pods", "name": "finished-pods", "cron": "0 3 * * *"},
]
TOKEN = "simulated-agents-take-any-token"  # noqa: S105  # no secret


def run_demo(
    run: Callable[[Config, str], int], nodes: int, listen: Listen, lang: str, say: Callable[[str], None]
) -> int:
    """Given what runs a daemon, run it on a simulated cluster of so many nodes, and return the exit code.

    It is given the address of what the robot of the group would show, too.
    """
    story = Simulation(nodes)
    story.start()
    try:
        with tempfile.TemporaryDirectory(prefix="gpuwarden-demo-") as directory:
            config = Config.model_validate(settings(story, Path(directory), listen, lang))
            say(f"a cluster of {nodes} nodes is simulated; its outages begin within seconds")
            robot = f"http://127.0.0.1:{story.robot_port}/"
            say(f"page     http://{listen}/")
            say(f"WeCom    {robot}   what the robot of the group would show")
            return run(config, robot)
    finally:
        story.stop()


def settings(story: Simulation, directory: Path, listen: Listen, lang: str) -> dict[str, Any]:
    """Return the configuration of a daemon that watches the simulated cluster."""
    robot = f"http://127.0.0.1:{story.robot_port}/cgi-bin/webhook/send?key={KEY}"
    return {
        "log_level": "warning",
        "daemon": {
            "listen": str(listen),
            "state": str(directory / "state"),
            "cycle": "2s",
            "kubernetes": {"enabled": "yes", "kubeconfig": str(story.kubeconfig(directory))},
            "agents": {"port": story.agents_port, "interval": "2s"},
            "gpu": {"idle_after": "20s", "settle": "5s", "stale_after": "20s"},
            "services": [
                {"name": "portal", "url": f"http://127.0.0.1:{story.portal_port}/", "interval": "2s", "limit": "2s"}
            ],
            "rules": RULES,
            "cleanup": {"agents": {"token": TOKEN}, "policies": POLICIES},
            "alerts": {
                "language": lang,
                "cluster": "demo",
                "receivers": [{"name": "ops", "kind": "wecom", "url": robot}],
                "owners": {user: {"wecom": user} for user in ("zhang", "li", "wang", "zhao", "chen", "liu")},
            },
        },
    }
