"""An owner with a phone: opens the link of a message and answers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, Page, ViewportSize

from tests.support import wait_until
from tests.support.receivers.bots import WeComBot
from tests.web.browser.conftest import PHONE_SIZE

KEEP_LINK = re.compile(r"\[保留 ([^\]]+)\]\((http://[^)\s]+/keep/[^)\s]+)\)")


def keep_links(robot: WeComBot) -> list[tuple[str, str]]:
    """Names and links in the messages of a group, in Chinese."""
    texts = [message[message["msgtype"]]["content"] for message in robot.taken]
    return [link for text in texts for link in KEEP_LINK.findall(text)]


def wait_link(robot: WeComBot, name: str, before: int = 0) -> str:
    """Wait for a message with a link about an object, after the first few, and return the link."""

    def links() -> list[str]:
        return [url for about, url in keep_links(robot)[before:] if name in about]

    wait_until(links, 60, f"the owner of {name} gets a link")
    return links()[0]


@contextmanager
def phone(chromium: Browser) -> Iterator[Page]:
    """A browser of a phone without an account."""
    viewport = ViewportSize(width=PHONE_SIZE["width"], height=PHONE_SIZE["height"])
    context = chromium.new_context(viewport=viewport, locale="zh-CN", has_touch=True, is_mobile=True)
    try:
        yield context.new_page()
    finally:
        context.close()


def keep_for(page: Page, url: str, choice: str, reason: str) -> None:
    """Keep the object of a link for one of the times that the page offers."""
    page.goto(url)
    page.get_by_label("保留时长").select_option(label=choice)
    page.get_by_label("原因（选填）").fill(reason)
    page.get_by_role("button", name="保留", exact=True).tap()
    page.get_by_text("已保留到").wait_for()
