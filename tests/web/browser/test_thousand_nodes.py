"""Every page of a cluster of 1,000 nodes and 10,000 pods fits desktop and phone, and its tables are bounded."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser

from bench import cluster_data
from bench.view import serving
from monitor.present.rows import MAX_ROWS
from monitor.sim.simulation import Simulation
from tests.support import free_port, wait_until
from tests.support.command import command, get, running
from tests.web.browser.conftest import PHONE_SIZE, SCREENSHOTS, Site
from tests.web.browser.inspection import overflows, wait_settled
from tests.web.browser.page_examples import EXAMPLES
from tests.web.browser.visits import Visit, signed_in

pytestmark = pytest.mark.e2e
NODES = 1000
READY_SECONDS = 240.0
SIZES = {"desktop": (1440, 900), "phone": (PHONE_SIZE["width"], PHONE_SIZE["height"])}
LONGEST_TABLE = "() => Math.max(0, ...[...document.querySelectorAll('tbody')].map((each) => each.rows.length))"


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("large")
    cluster_data.write(folder / "data", NODES)
    port = free_port()
    environ = {name: value for name, value in os.environ.items() if not name.startswith("GPUWARDEN_")}
    with serving(folder / "data") as ports:
        config = folder / "gpuwarden.json"
        config.write_text(json.dumps(_settings(str(folder), port, ports)))
        with running(command("daemon", "--config", str(config)), environ):
            site = Site(f"http://127.0.0.1:{port}", Simulation(outages=()), folder / "state")
            wait_until(lambda: _is_ready(site), READY_SECONDS, "the daemon sees all GPUs, and evaluates them")
            yield site


def _settings(folder: str, port: int, ports: dict[str, int]) -> dict[str, Any]:
    kubeconfig = {
        "apiVersion": "v1", "kind": "Config", "current-context": "c", "users": [{"name": "u", "user": {}}],
        "clusters": [{"name": "c", "cluster": {"server": f"http://127.0.0.1:{ports['api']}"}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
    }  # fmt: skip
    path = f"{folder}/kubeconfig"
    with open(path, "w", encoding="utf-8") as file:
        json.dump(kubeconfig, file)
    policies = [{"kind": "pods", "name": "finished-pods", "cron": "0 3 * * *"}]
    daemon = {
        "listen": f"127.0.0.1:{port}",
        "state": f"{folder}/state",
        "kubernetes": {"enabled": "yes", "kubeconfig": path},
        "agents": {"port": ports["agents"]},
        "cleanup": {"policies": policies},
    }
    return {"log_level": "error", "daemon": daemon}


def _is_ready(site: Site) -> bool:
    try:
        alerts = json.loads(get(f"{site.url}/v1/alerts")[2])
        return any(alert["phase"] == "firing" for alert in alerts) and len(site.view().gpus) == 8 * NODES
    except OSError:
        return False


@pytest.fixture(scope="module")
def visit(large: Site, chromium: Browser) -> Iterator[Visit]:
    with signed_in(large, chromium) as visit:
        yield visit


@pytest.mark.parametrize("route", EXAMPLES)
def test_a_page_fits_and_is_bounded(visit: Visit, route: str) -> None:
    visit.speak("en")
    page, problems = visit.page, []
    for number, address in enumerate(EXAMPLES[route](visit.objects)):
        page.goto(visit.site.url + address)
        for theme in ("light", "dark"):
            page.emulate_media(color_scheme="dark" if theme == "dark" else "light")
            for size, (width, height) in SIZES.items():
                page.set_viewport_size({"width": width, "height": height})
                wait_settled(page)
                problems += [f"{address} {size} {theme}: {problem}" for problem in overflows(page)]
                if (size, theme) in (("desktop", "light"), ("phone", "dark")):
                    name = "".join(letter if letter.isalnum() else "-" for letter in f"large-{route}-{number}-{size}")
                    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
                    page.screenshot(path=SCREENSHOTS / f"{name}.png")
        rows = page.evaluate(LONGEST_TABLE)
        problems += [f"{address}: a table of {rows} rows"] if rows > MAX_ROWS else []
    assert problems + visit.witness.complaints == []
