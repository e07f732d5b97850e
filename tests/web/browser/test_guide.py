"""The guide of the demo in a browser: on a phone and a desktop, in both languages, hidden and shown again."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Page, expect

from monitor.i18n import CATALOGS
from tests.support import free_port, wait_until
from tests.support.command import command, get, running
from tests.web.browser.conftest import PHONE_SIZE, Tab

TIMEOUT_MILLISECONDS = 60_000
START_LIMIT_SECONDS = 90.0
DESKTOP_SIZE = {"width": 1440, "height": 900}


@pytest.fixture(scope="module")
def demo() -> Iterator[str]:
    """A demo with two nodes."""
    port = free_port()
    environ = {name: value for name, value in os.environ.items() if not name.startswith("GPUWARDEN_")}
    line = command("demo", "--nodes", "2", "--listen", f"127.0.0.1:{port}", "--lang", "en", "--speed", "0.5")
    with running(line, environ):
        url = f"http://127.0.0.1:{port}"
        wait_until(lambda: answers(url), START_LIMIT_SECONDS, "the page answers")
        yield url


def answers(url: str) -> bool:
    try:
        return get(f"{url}/")[0] == 200
    except OSError:
        return False


def overflow(page: Page) -> int:
    return int(page.evaluate("document.documentElement.scrollWidth - window.innerWidth"))


@pytest.mark.parametrize("size", [PHONE_SIZE, DESKTOP_SIZE], ids=["phone", "desktop"])
@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_guide_fits_and_leads_on(demo: str, tabs: Callable[..., Tab], size: dict[str, int], lang: str) -> None:
    tab = tabs(viewport=size)
    page, texts = tab.page, CATALOGS[lang]
    page.goto(f"{demo}/?lang={lang}")
    guide = page.locator("#guide")
    expect(guide.get_by_role("heading")).to_contain_text("/13", timeout=TIMEOUT_MILLISECONDS)
    expect(page.get_by_role("region")).to_have_count(1)
    assert overflow(page) <= 0
    box = guide.bounding_box()
    assert box is not None
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= size["width"]
    assert box["height"] < size["height"] / 2
    tab.shoot(f"guide-{lang}-{size['width']}")
    guide.get_by_role("link").click()
    expect(page).not_to_have_url(f"{demo}/?lang={lang}", timeout=TIMEOUT_MILLISECONDS)
    expect(page.locator("#guide")).to_be_visible(timeout=TIMEOUT_MILLISECONDS)  # on every page
    page.wait_for_load_state()  # the script of the button is deferred
    page.get_by_role("button", name=texts["page.guide.hide"]).click()
    expect(page.locator("#guide")).to_be_hidden(timeout=TIMEOUT_MILLISECONDS)
    page.goto(f"{demo}/nodes")
    expect(page.locator("#nodes tbody tr").first).to_be_visible(timeout=TIMEOUT_MILLISECONDS)
    expect(page.locator("#guide")).to_be_hidden(timeout=TIMEOUT_MILLISECONDS)  # until the browser is closed ...
    page.get_by_role("button", name=texts["page.guide.show"], exact=True).press("Enter")
    expect(page.locator("#guide")).to_be_visible(timeout=TIMEOUT_MILLISECONDS)  # ... or the button is used
    expect(page.get_by_role("button", name=texts["page.guide.hide"])).to_be_focused(timeout=TIMEOUT_MILLISECONDS)


def test_the_guide_follows_the_story(demo: str, tabs: Callable[..., Tab]) -> None:
    page = tabs().page
    page.goto(f"{demo}/?lang=en")
    title = page.locator("#guide-title")
    before = title.inner_text()
    expect(title).not_to_have_text(before, timeout=3 * TIMEOUT_MILLISECONDS)
