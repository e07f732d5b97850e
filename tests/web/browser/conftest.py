"""Chromium, and a daemon on a simulated cluster that changes only when a test changes it."""

from __future__ import annotations

import json
import os
import random
import re
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import pytest
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

from monitor.config.types import Listen
from monitor.facts.cluster import ClusterView
from monitor.sim.demo import settings
from monitor.sim.simulation import Simulation
from tests.support import free_port, need, wait_until
from tests.support.command import command, get, running
from tests.support.local_token import local_headers

PHONE_SIZE = {"width": 390, "height": 844}
CHROMIUM = "/usr/bin/chromium"
SCREENSHOTS = Path(__file__).parents[3] / "build" / "screenshots"  # screenshots, kept after the run


class Calm(random.Random):
    """Random numbers with which no workload is submitted: a GPU that becomes free stays free."""

    def random(self) -> float:
        return 0.999


@dataclass
class DaemonPage:
    """The page of a daemon, and its state directory."""

    url: str
    state: Path

    def view(self) -> ClusterView:
        return msgspec.json.decode(get(f"{self.url}/v1/view")[2], type=ClusterView)

    def login_link(self) -> str:
        """A one-time login link for an admin."""
        headers = local_headers(self.state) | {"Content-Type": "application/json"}
        ask = urllib.request.Request(f"{self.url}/v1/login-link", b"{}", headers, method="POST")
        with urllib.request.urlopen(ask, timeout=60) as answer:
            return self.url + str(json.load(answer)["path"])


@dataclass
class Site(DaemonPage):
    """The page of a daemon in a simulated cluster."""

    story: Simulation


@dataclass
class Tab:
    """A browser page, and its errors and warnings."""

    page: Page
    complaints: list[str] = field(default_factory=list)

    def shoot(self, name: str) -> None:
        SCREENSHOTS.mkdir(parents=True, exist_ok=True)
        self.page.screenshot(path=SCREENSHOTS / f"{name}.png")


@contextmanager
def open_chromium() -> Iterator[Browser]:
    """Debian's Chromium. No other browser can be driven in this process at the same time."""
    need(os.access(CHROMIUM, os.X_OK), f"Debian's chromium at {CHROMIUM}")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with open_chromium() as browser:
        yield browser


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with running_site(tmp_path_factory.mktemp("daemon")) as site:
        yield site


@contextmanager
def running_site(directory: Path, **daemon: Any) -> Iterator[Site]:
    """A daemon, with these sections of its configuration instead of the demo's, that sees a simulated cluster."""
    story, port = Simulation(outages=()), free_port()
    story.start()
    story.call(lambda stage: setattr(stage.cluster, "chance", Calm()))
    try:
        config = directory / "gpuwarden.json"  # JSON is YAML
        given = settings(story, directory, Listen(host="127.0.0.1", port=port), "en")
        given["daemon"] |= daemon
        config.write_text(json.dumps(given))
        environ = {name: value for name, value in os.environ.items() if not name.startswith("GPUWARDEN_")}
        with running(command("daemon", "--config", str(config)), environ):
            site = Site(f"http://127.0.0.1:{port}", directory / "state", story)
            wait_until(lambda: _ready(site), 30, "the daemon sees all GPUs")
            yield site
    finally:
        story.stop()


def _ready(site: Site) -> bool:
    try:
        return len(site.view().gpus) == 48
    except OSError:
        return False


@pytest.fixture
def tabs(chromium: Browser) -> Iterator[Callable[..., Tab]]:
    """Open pages in isolated contexts. None of them may log an error or a warning."""
    opened: list[tuple[BrowserContext, Tab]] = []

    def open_tab(**options: Any) -> Tab:
        wanted: dict[str, Any] = {"viewport": {"width": 1440, "height": 900}, "locale": "en-US"}
        context = chromium.new_context(**(wanted | options))
        tab = Tab(context.new_page())
        tab.page.on("console", lambda message: _heard(tab, message.type, message.text))
        tab.page.on("pageerror", lambda error: tab.complaints.append(str(error)))
        opened.append((context, tab))
        return tab

    yield open_tab
    complaints = [each for _, tab in opened for each in tab.complaints]
    for context, _ in opened:
        context.close()
    assert complaints == []


def _heard(tab: Tab, kind: str, text: str) -> None:
    # Chromium logs 4xx responses as errors; some tests request such pages on purpose.
    if kind in ("error", "warning") and not re.search(r"status of 40[134]", text):
        tab.complaints.append(text)


@pytest.fixture
def admin(site: Site, tabs: Callable[..., Tab]) -> Tab:
    """A page that is signed in with a login link."""
    tab = tabs()
    tab.page.goto(site.login_link())
    tab.page.get_by_role("button", name="sign out").wait_for()
    return tab
