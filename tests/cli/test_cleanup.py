"""`gpuwarden cleanup` and a real daemon on a simulated cluster."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from monitor.sim.node import GIB, SimNode
from monitor.sim.outages import OutageContext
from monitor.sim.simulation import Simulation
from tests.cleanup.running import on_node, simulated
from tests.cli.leftovers import english_in
from tests.support import free_port, wait_until
from tests.support.action_keys import write_keys
from tests.support.command import command, get, quiet_environment, run, running

CONFIG = """
log_level: error
daemon:
  timezone: Asia/Shanghai
  listen: 127.0.0.1:{port}
  state: {state}
  kubernetes: {{enabled: yes, kubeconfig: {kubeconfig}}}
  agents: {{port: {agents}, interval: 200ms}}
  alerts: {{receivers: [{{name: log, kind: console}}]}}
  cleanup:
    agents: {{private_key_file: {key}}}
    policies:
      - {{kind: images, name: images, mode: enforce, announce: 0s, min_age: 1h, high: 80%, low: 70%, cron: "0 3 * * *"}}
      - {{kind: images, name: careful, min_age: 1h, high: off, low: off, cron: "0 4 * * *"}}
"""


@pytest.fixture(scope="module")
def story() -> Iterator[Simulation]:
    with simulated() as made:
        yield made


@pytest.fixture(scope="module")
def config(story: Simulation, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Configuration file of a running daemon."""
    folder, port = tmp_path_factory.mktemp("daemon"), free_port()

    def old(node: SimNode, _stage: OutageContext) -> None:
        for number in range(3):
            node.add_image(f"harbor.lab/old/i{number}:1", 20 * GIB, time.time(), time.time() - 20 * 86400, shared=0.0)

    on_node(story, old)
    path = folder / "gpuwarden.yml"
    given = {
        "port": port,
        "state": folder / "state",
        "agents": story.agents_port,
        "key": write_keys(folder).private_file,
    }
    path.write_text(CONFIG.format(kubeconfig=story.kubeconfig(folder), **given))
    environ = {
        name: value
        for name, value in quiet_environment(folder / "state").items()
        if not name.startswith("GPUWARDEN_DAEMON")
    }
    with running(command("daemon", "--config", str(path)), environ) as daemon:

        def planned() -> bool:
            assert daemon.poll() is None, daemon.communicate()[1]
            try:
                status, _, body = get(f"http://127.0.0.1:{port}/v1/cleanup/plan?policy=careful")
            except OSError:
                return False
            return status == 200 and bool(json.loads(body)) and not json.loads(body)[0].get("refused")

        wait_until(planned, 30, "the daemon can say what it would do")
        yield str(path)
        daemon.terminate()
        assert daemon.wait(60) == 0


def said(config: str, *arguments: str, code: int = 0) -> Any:
    result = run("cleanup", *arguments, "--json", "--config", config)
    assert result.returncode == code, result.stderr
    return json.loads(result.stdout)


def runs(config: str, policy: str) -> list[Any]:
    """Runs of a policy from the daemon's API, because a command takes a second to start."""
    listen = Path(config).read_text().partition("listen: ")[2].partition("\n")[0]
    found: list[Any] = json.loads(get(f"http://{listen}/v1/cleanup/history?policy={policy}")[2])
    return found


def names(story: Simulation) -> set[str]:
    return set(on_node(story, lambda node, _: set(node.images)))


def test_a_plan_is_shown(config: str, story: Simulation) -> None:
    before = names(story)
    plans = said(config, "plan")["plans"]
    assert [(plan["policy"], plan["mode"]) for plan in plans] == [("images", "enforce"), ("careful", "dry-run")]
    shown = run("cleanup", "plan", "careful", "--config", config)
    assert shown.returncode == 0
    assert "careful on gpu01 (images, dry-run): " in shown.stdout
    assert "harbor.lab/old/i0:1" in shown.stdout
    assert "个" not in shown.stdout
    assert "天" in run("cleanup", "plan", "careful", "--lang", "zh", "--config", config).stdout
    assert names(story) == before


def test_the_next_run_is_at_four_in_the_time_zone_of_the_daemon(config: str) -> None:
    (plan,) = said(config, "plan", "careful")["plans"]
    assert plan["next_run_at"] % 86400 == 20 * 3600  # 04:00 in Shanghai is 20:00 in UTC
    shown = " ".join(run("cleanup", "plan", "careful", "--config", config).stdout.split())
    assert re.search(r"next run \d{4}-\d\d-\d\d 04:00 CST", shown)


def test_a_run_keeps_to_its_mode(config: str, story: Simulation) -> None:
    before = names(story)
    assert said(config, "run", "careful") == {"started": ["gpu01"]}
    wait_until(lambda: runs(config, "careful"), 10, "it ran")
    (ran,) = said(config, "history", "careful")["runs"]
    assert (ran["run"]["end"], ran.get("items", [])) == ("dry-run", [])
    assert names(story) == before


def test_answers_are_in_chinese(config: str) -> None:
    started = run("cleanup", "run", "careful", "--lang", "zh", "--config", config)
    assert started.stdout == "careful 已在 gpu01 上开始执行；结果见 gpuwarden cleanup history\n"
    planned = run("cleanup", "plan", "careful", "--lang", "zh", "--config", config)
    assert english_in(planned.stdout, ["careful"]) == []


def test_a_full_disk_is_cleaned_up_by_the_daemon(config: str, story: Simulation) -> None:
    def fill(node: SimNode, _stage: OutageContext) -> None:
        node.runtime_disk.used = node.runtime_disk.size * 0.70 + 30 * GIB

    on_node(story, fill)
    run("cleanup", "run", "images", "--node", "gpu01", "--config", config)
    wait_until(
        lambda: [each for each in runs(config, "images") if each["run"].get("end") == "low-water"], 30, "it ended"
    )
    table = run("cleanup", "history", "images", "--items", "--config", config)
    assert "low-water" in table.stdout
    assert "removed" in table.stdout
    assert len({f"harbor.lab/old/i{number}:1" for number in range(3)} - names(story)) == 2
    assert said(config, "history")["runs"][0]["run"]["by"].endswith("@127.0.0.1")


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("run", "nonsense"), 1, "there is no policy 'nonsense'; there are images, careful"),
        (("run", "images", "--node", "n9"), 1, "images does not apply to n9"),
        (("release", "gpu01", "77"), 1, "gpu01 has no GPU 77"),
        (("restore", "t-0"), 1, "no trash entry has the id t-0"),
        (("history", "--limit", "0"), 2, "0 is not in the range"),
        (("release", "gpu01"), 2, "Missing argument 'GPU'"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else None,
)
def test_what_is_asked_wrongly(config: str, arguments: tuple[str, ...], code: int, message: str) -> None:
    result = run("cleanup", *arguments, "--config", config)
    assert (result.returncode, message in result.stderr) == (code, True), result.stderr
    assert "Traceback" not in result.stderr


def test_without_a_daemon(tmp_path: Path) -> None:
    path = tmp_path / "gpuwarden.yml"
    path.write_text(f"daemon: {{listen: 127.0.0.1:{free_port()}, state: {tmp_path}}}\n")
    result = run("cleanup", "plan", "--config", str(path))
    assert result.returncode == 3
    assert "no daemon answers" in result.stderr
