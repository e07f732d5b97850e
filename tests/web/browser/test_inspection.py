"""The inspection of pages finds what it is for."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page

from tests.web.browser.inspection import COLOUR_RULES, Witness, accessibility, overflows

FRAME = '<!doctype html><html lang="en"><title>t</title><main><h1>t</h1>{}</main></html>'
LONG = "w" * 400


@pytest.fixture
def page(chromium: Browser) -> Iterator[Page]:
    page = chromium.new_page(viewport={"width": 390, "height": 844})
    yield page
    page.close()


WIDTHS = [
    ("text that wraps", "<p>some words</p>", 0),
    ("a page that is too wide", f"<p>{LONG}</p>", 2),
    ("text in a box that is too small", f'<div style="width: 50px">{LONG[:20]}</div>', 1),
    ("text that is shortened", f'<p style="overflow: hidden; text-overflow: ellipsis">{LONG}</p>', 0),
    ("text that is cut", f'<p style="overflow: hidden">{LONG}</p>', 1),
    ("a box that scrolls", f'<div style="overflow-x: auto">{LONG}</div>', 0),
    ("a panel that scrolls", f'<div class="panel" style="overflow-x: auto">{LONG}</div>', 1),
    ("a fixed box outside of the window", '<p style="position: fixed; left: 300px; width: 200px">x</p>', 1),
    ("a hidden one", f"<p hidden>{LONG}</p>", 0),
]


@pytest.mark.parametrize(("name", "content", "least"), WIDTHS, ids=[case[0] for case in WIDTHS])
def test_what_does_not_fit_is_found(page: Page, name: str, content: str, least: int) -> None:
    page.set_content(FRAME.format(content))
    found = overflows(page)
    assert len(found) >= least
    assert bool(found) is bool(least)


def test_what_is_hard_to_read_or_to_reach_is_found(page: Page) -> None:
    page.set_content(FRAME.format('<p style="color: #bbb">pale</p><input>'))
    assert {each.split()[0] for each in accessibility(page)} == {"color-contrast", "label"}
    assert {each.split()[0] for each in accessibility(page, rules=COLOUR_RULES)} == {"color-contrast"}
    assert accessibility(page, "h1") == []


def test_complaints_of_the_browser_are_noted(page: Page) -> None:
    witness = Witness(page)
    page.set_content(
        FRAME.format('<script>console.error("one"); console.log("two"); throw new Error("three")</script>')
    )
    assert witness.complaints == ["error: one", "three"]
