"""The demo with the real daemon: what the guide promises is reported, and in the end the cluster is healthy."""

from __future__ import annotations

import json
import os
import re
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from monitor.config.types import Listen
from monitor.sim.demo import settings
from monitor.sim.outages import OUTAGES
from monitor.sim.scenes import SCENES
from monitor.sim.simulation import Simulation
from tests.support import free_port, wait_until
from tests.support.command import STOP_LIMIT, command, get, running

pytestmark = pytest.mark.e2e  # the story takes minutes, and needs a machine that keeps up with it

SPEED = 4.0
FAST = "8"
LIMIT_SECONDS = 180.0


def environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("GPUWARDEN_")}


def shown(url: str) -> str:
    try:
        return get(f"{url}/")[2]
    except OSError:
        return ""


def ask(url: str, path: str) -> Any:
    try:
        return json.loads(get(url + path)[2])
    except OSError:
        return []


def fired(url: str) -> set[str]:
    """Rules whose alerts have fired within the last hour."""
    return {event["rule"] for event in ask(url, "/v1/alerts/history?since=1h") if event["what"] == "fired"}


def firing(url: str) -> set[str]:
    return {alert["rule"] for alert in ask(url, "/v1/alerts") if alert["phase"] == "firing"}


def evaluated_at(url: str) -> float:
    """Time of the last evaluation; 0 before the first."""
    figures = re.search(r"^gpuwarden_last_look_seconds (\S+)$", get(f"{url}/metrics")[2], re.MULTILINE)
    return float(figures[1]) if figures is not None else 0.0


@contextmanager
def daemon(simulation: Simulation, directory: Path) -> Iterator[str]:
    port, config = free_port(), directory / "gpuwarden.json"  # JSON is YAML
    config.write_text(json.dumps(settings(simulation, directory, Listen(host="127.0.0.1", port=port), "en", SPEED)))
    with running(command("daemon", "--config", str(config)), environment()):
        yield f"http://127.0.0.1:{port}"


def test_every_outage_is_reported_as_the_guide_says_and_leaves_nothing_behind(tmp_path: Path) -> None:
    simulation = Simulation(outages=(), changing=False)
    simulation.start()
    try:
        with daemon(simulation, tmp_path) as url:
            wait_until(lambda: shown(url).count('<a class="c ') == 48, LIMIT_SECONDS, "all GPUs are seen")
            seen_at = time.time()  # what disappears before the first evaluation is not missed
            wait_until(lambda: evaluated_at(url) > seen_at, LIMIT_SECONDS, "all that was seen has been evaluated")
            for outage in OUTAGES:
                simulation.call(outage.begin)
            promised = {scene.rule for scene in SCENES if scene.rule is not None}
            wait_until(lambda: promised <= fired(url), LIMIT_SECONDS, "every scene has its alert")
            for outage in OUTAGES:
                simulation.call(outage.end)
            wait_until(lambda: not firing(url), LIMIT_SECONDS, "all alerts are resolved")
    finally:
        simulation.stop()


def test_the_demo_ends_with_a_healthy_cluster_and_goes_on_serving(tmp_path: Path) -> None:
    port = free_port()
    line = command("demo", "--listen", f"127.0.0.1:{port}", "--lang", "zh", "--speed", FAST)
    with (tmp_path / "out").open("w") as out, running(line, environment(), stdout=out.fileno()) as process:
        url = f"http://127.0.0.1:{port}"
        wait_until(lambda: len(titles(tmp_path)) == len(SCENES), LIMIT_SECONDS, "the last scene is told")
        assert "恢复健康" in titles(tmp_path)[-1]
        wait_until(lambda: ask(url, "/v1/alerts") and not firing(url), LIMIT_SECONDS, "all alerts are resolved")
        assert "gpuwarden init" in printed(tmp_path)
        assert "mass-deletion" in fired(url)
        assert process.poll() is None
        process.send_signal(signal.SIGTERM)
        assert process.wait(STOP_LIMIT) == 0


def titles(directory: Path) -> list[str]:
    """Titles of the scenes so far."""
    return [line for line in printed(directory).splitlines() if line.startswith("[")]


def printed(directory: Path) -> str:
    return (directory / "out").read_text()
