"""A real Chromium, and the real daemon on a simulated cluster in which nothing happens unless a test has it happen."""

from __future__ import annotations

import json
import os
import random
import re
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import pytest
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

from monitor.config.types import Listen
from monitor.facts.cluster import ClusterView
from monitor.sim.demo import settings
from monitor.sim.story import Story
from tests.support import free_port, need, wait_until
from tests.support.command import command, get, running

CHROMIUM = "/usr/bin/chromium"
SHOTS = Path(__file__).parents[3] / "build" / "screenshots"  # what the pages looked like, kept after the run


class Calm(random.Random):
    """Chance by which nobody submits anything: a card that becomes free stays free."""

    def random(self) -> float:
        return 0.999


@dataclass
class Site:
    """The page of a daemon, and the world that it watches."""

    url: str
    story: Story

    def view(self) -> ClusterView:
        return msgspec.json.decode(get(f"{self.url}/v1/view")[2], type=ClusterView)

    def login_link(self) -> str:
        """Return the link by which a browser becomes an admin's, as who sits at this machine may have it."""
        ask = urllib.request.Request(
            f"{self.url}/v1/login-link", b"{}", {"Content-Type": "application/json"}, method="POST"
        )
        with urllib.request.urlopen(ask, timeout=10) as answer:
            return self.url + str(json.load(answer)["path"])


@dataclass
class Tab:
    """A page in the browser, and everything that it complained about."""

    page: Page
    complaints: list[str] = field(default_factory=list)

    def shoot(self, name: str) -> None:
        SHOTS.mkdir(parents=True, exist_ok=True)
        self.page.screenshot(path=SHOTS / f"{name}.png")


@pytest.fixture(scope="module")  # while it is there, nothing else in this process can drive a browser
def chromium() -> Iterator[Browser]:
    need(os.access(CHROMIUM, os.X_OK), f"Debian's chromium at {CHROMIUM}")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    directory = tmp_path_factory.mktemp("daemon")
    story, port = Story(outages=()), free_port()
    story.start()
    story.call(lambda stage: setattr(stage.cluster, "chance", Calm()))
    try:
        config = directory / "gpuwarden.json"  # which is YAML too
        config.write_text(json.dumps(settings(story, directory, Listen(host="127.0.0.1", port=port), "en")))
        environ = {name: value for name, value in os.environ.items() if not name.startswith("GPUWARDEN_")}
        with running(command("daemon", "--config", str(config)), environ):
            found = Site(f"http://127.0.0.1:{port}", story)
            wait_until(lambda: _ready(found), 30, "the daemon sees all cards")
            yield found
    finally:
        story.stop()


def _ready(site: Site) -> bool:
    try:
        return len(site.view().gpus) == 48
    except OSError:
        return False


@pytest.fixture
def tabs(chromium: Browser) -> Iterator[Callable[..., Tab]]:
    """Open pages in browsers that know nothing of each other. None of them may complain about anything."""
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
    # A page that is not there is said to be so by the browser too; a test asks for one on purpose.
    if kind in ("error", "warning") and not re.search(r"status of 40[134]", text):
        tab.complaints.append(text)


@pytest.fixture
def admin(site: Site, tabs: Callable[..., Tab]) -> Tab:
    """A page of somebody who has opened the link that is shown on the machine of the daemon."""
    tab = tabs()
    tab.page.goto(site.login_link())
    tab.page.get_by_role("button", name="sign out").wait_for()
    return tab
