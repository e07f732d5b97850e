"""Every page of a cluster of 1,000 nodes and 10,000 pods: it fits desktop and phone, is readable, and is bounded."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from itertools import product
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from bench import cluster_data
from bench.view import serving
from monitor.i18n import LANGUAGES
from monitor.present.rows import MAX_ROWS
from monitor.sim.simulation import Simulation
from tests.support import free_port, wait_until
from tests.support.command import command, get, running
from tests.web.browser.conftest import PHONE_SIZE, SCREENSHOTS, Site
from tests.web.browser.inspection import COLOUR_RULES, accessibility, overflows, wait_settled
from tests.web.browser.page_examples import EXAMPLES
from tests.web.browser.visits import Visit, signed_in

pytestmark = pytest.mark.e2e
NODES = 1000
READY_SECONDS = 240.0
SIZES = {"desktop": (1440, 900), "phone": (PHONE_SIZE["width"], PHONE_SIZE["height"])}
# Language, size and theme in which axe-core examines the pages; None are all of its rules.
AXE_RULES: dict[tuple[str, str, str], tuple[str, ...] | None] = {
    ("en", "desktop", "light"): None,
    ("zh", "phone", "dark"): COLOUR_RULES,
}
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


@pytest.mark.parametrize("lang", LANGUAGES)
@pytest.mark.parametrize("route", EXAMPLES)
def test_a_page_fits_and_is_bounded(visit: Visit, route: str, lang: str) -> None:
    visit.speak(lang)
    page, problems = visit.page, []
    for number, address in enumerate(EXAMPLES[route](visit.objects)):
        page.goto(visit.site.url + address)
        for theme, (size, (width, height)) in product(("light", "dark"), SIZES.items()):
            page.emulate_media(color_scheme="dark" if theme == "dark" else "light")
            page.set_viewport_size({"width": width, "height": height})
            wait_settled(page)
            found = overflows(page)
            if (lang, size, theme) in AXE_RULES:
                found += accessibility(page, rules=AXE_RULES[lang, size, theme])
                _take_picture(page, f"large-{route}-{number}-{size}")
            problems += [f"{address} {size} {theme}: {problem}" for problem in found]
        rows = page.evaluate(LONGEST_TABLE)
        problems += [f"{address}: a table of {rows} rows"] if rows > MAX_ROWS else []
    assert problems + visit.witness.complaints == []


def _take_picture(page: Page, name: str) -> None:
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    plain = "".join(letter if letter.isalnum() else "-" for letter in name)
    page.screenshot(path=SCREENSHOTS / f"{plain}.png")
