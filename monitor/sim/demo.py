"""`gpuwarden demo`: the real daemon on a simulated cluster with a week behind it and an outage of every kind ahead."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from monitor.base.private_files import replace_file
from monitor.base.signing import generate_keys
from monitor.config.root import Config
from monitor.config.types import Listen
from monitor.detect.meta import META_RULE_NAMES
from monitor.detect.rules import RULES
from monitor.sim.narrator import Narrator
from monitor.sim.past import make_past
from monitor.sim.seed import MAX_NODES, Seeding
from monitor.sim.simulation import Simulation
from monitor.sim.wecom import KEY
from monitor.web.context import HeaderLink, PageExtras

# Half an hour in a real cluster is seconds here.
LIMITS_SECONDS: Mapping[str, Mapping[str, float]] = {
    "gpu_idle": {"warm_up": 5, "warning_after": 30, "notebook_warning_after": 30},
    "gpu_zombie": {"finished_after": 10},
    "pod_pending": {"waiting": 15},
    "service_down": {"after": 5},
    "agent_silent": {"silent_after": 20},
}
RESOLVE_AFTER_SECONDS = 30.0
# Images are cleaned up as soon as the disk is too full, without the usual day of notice.
POLICIES = [
    {"kind": "images", "name": "node-images", "mode": "enforce", "high": "80%", "low": "60%", "announce": "0s"},
    {"kind": "pods", "name": "finished-pods", "cron": "0 3 * * *"},
]
KEY_FILE = "action-private-key"


def run_demo(
    run: Callable[[Config, PageExtras, Callable[[], None]], int],
    nodes: int,
    listen: Listen,
    lang: str,
    tell: Callable[[str], None],
    speed: float = 1.0,
) -> int:
    """Run a daemon on a simulated cluster, and return the exit code.

    `run` takes the configuration, what the demo adds to the pages, and what to call when the page can be opened: the
    story begins then. `tell` prints a line. With a `speed` of 2, the scenes take half the time.
    """
    with ExitStack() as stack:
        simulation = Simulation(nodes)
        simulation.start()
        stack.callback(simulation.stop)
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="gpuwarden-demo-")))
        config = Config.model_validate(settings(simulation, directory, listen, lang, speed))
        narrator = Narrator(simulation, listen, lang, tell, speed)
        robot = f"http://127.0.0.1:{simulation.robot_port}/"
        narrator.introduce(robot, f"GPUWARDEN_DAEMON__LISTEN={listen} GPUWARDEN_DAEMON__STATE={config.daemon.state}")
        if nodes <= MAX_NODES:
            seeding = Seeding(simulation.call(lambda context: make_past(context.cluster)), Path(config.daemon.state))
            seeding.write_recent()
            seeding.start()
            stack.callback(seeding.stop)
        stack.callback(narrator.stop)
        return run(config, PageExtras((HeaderLink("WeCom", robot),), narrator.guide), narrator.start)


def settings(simulation: Simulation, directory: Path, listen: Listen, lang: str, speed: float = 1.0) -> dict[str, Any]:
    """Configuration of a daemon for the simulated cluster. With a `speed` of 2, it notices everything twice as fast."""
    robot = f"http://127.0.0.1:{simulation.robot_port}/cgi-bin/webhook/send?key={KEY}"
    resolve = {"resolve_after": RESOLVE_AFTER_SECONDS / speed}
    rules = (*(rule.rule for rule in RULES), *META_RULE_NAMES)
    return {
        "log_level": "warning",
        "daemon": {
            "listen": str(listen),
            "state": str(directory / "state"),
            "cycle": 2 / speed,
            "kubernetes": {"enabled": "yes", "kubeconfig": str(simulation.kubeconfig(directory))},
            "agents": {"port": simulation.agents_port, "interval": 2 / speed},
            "gpu": {"idle_after": 20 / speed, "settle": 5 / speed, "stale_after": max(5.0, 20 / speed)},
            "services": [
                {
                    "name": "portal",
                    "url": f"http://127.0.0.1:{simulation.portal_port}/",
                    "interval": 2 / speed,
                    "limit": "2s",
                }
            ],
            "rules": {
                rule: {name: seconds / speed for name, seconds in limits.items()}
                for rule, limits in LIMITS_SECONDS.items()
            },
            "cleanup": {"agents": {"private_key_file": _new_key(directory)}, "policies": POLICIES},
            "alerts": {
                "language": lang,
                "cluster": "demo",
                "receivers": [{"name": "ops", "kind": "wecom", "url": robot}],
                "owners": {user: {"wecom": user} for user in ("zhang", "li", "wang", "zhao", "chen", "liu")},
                "rules": {rule.replace("-", "_"): resolve for rule in rules},
            },
        },
    }


def _new_key(directory: Path) -> str:
    """Path of a new private key for actions; simulated agents accept any signature."""
    path = str(directory / KEY_FILE)
    replace_file(path, generate_keys().private.encode())
    return path
