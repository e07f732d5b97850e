"""Take all pictures in all languages, or those whose names are given."""

from __future__ import annotations

import os
import sys
from collections.abc import Collection, Iterator
from functools import partial
from pathlib import Path

from playwright.sync_api import Browser, Page, StorageState, sync_playwright

from docs.screenshots.demo import SHOW_LIMIT_SECONDS, Demo, running_demo, wait_for
from docs.screenshots.png import small_png
from docs.screenshots.shots import SHOTS, Screen

DIRECTORY = Path(__file__).parent
CHROMIUM = "/usr/bin/chromium"
LOCALES = {"en": "en-US", "zh": "zh-CN"}
TIMEZONE = "UTC"
MAX_BYTES = 200 * 1024


def main() -> int:
    """Write the pictures and print their names. Exit code 2 if one cannot be taken."""
    names = sys.argv[1:] or [shot.name for shot in SHOTS]
    if unknown := set(names) - {shot.name for shot in SHOTS}:
        sys.stderr.write(f"unknown: {', '.join(sorted(unknown))}\n")
        return 2
    if not os.access(CHROMIUM, os.X_OK):
        sys.stderr.write(f"pictures need a browser at {CHROMIUM} (Debian: chromium)\n")
        return 2
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        for language in LOCALES:
            for path in _take(browser, language, names):
                sys.stdout.write(f"{path.relative_to(DIRECTORY.parents[1])} {path.stat().st_size // 1024} KiB\n")
                sys.stdout.flush()
        browser.close()
    return 0


def _take(browser: Browser, language: str, names: Collection[str]) -> Iterator[Path]:
    """Take the named pictures in one language, and yield their files."""
    with running_demo(language) as demo:
        pages: dict[Screen, Page] = {}
        session, blank = _sign_in(browser, demo), browser.new_page()
        for shot in SHOTS:
            if shot.name not in names:
                continue
            address = wait_for(partial(shot.find, demo), SHOW_LIMIT_SECONDS, f"what {shot.name} shows")
            if shot.screen not in pages:
                pages[shot.screen] = _open(browser, shot.screen, language, session)
            content = small_png(blank, _picture(pages[shot.screen], address))
            if len(content) > MAX_BYTES:
                raise ValueError(f"{shot.name} has {len(content)} bytes, more than {MAX_BYTES}: show less of the page")
            path = DIRECTORY / language / f"{shot.name}.png"
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(content)
            yield path


def _picture(page: Page, address: str) -> bytes:
    """The picture of a page that is complete."""
    page.goto(address, wait_until="networkidle")
    page.evaluate("document.fonts.ready")
    return page.screenshot(animations="disabled", caret="hide")


def _sign_in(browser: Browser, demo: Demo) -> StorageState:
    """The session of an administrator: pages then show their buttons."""
    context = browser.new_context()
    page = context.new_page()
    page.goto(demo.login)
    page.wait_for_url(lambda url: "/login" not in url)
    state = context.storage_state()
    context.close()
    return state


def _open(browser: Browser, screen: Screen, language: str, session: StorageState) -> Page:
    context = browser.new_context(
        viewport={"width": screen.width, "height": screen.height},
        device_scale_factor=screen.scale,
        locale=LOCALES[language],
        timezone_id=TIMEZONE,
        color_scheme="light",
        reduced_motion="reduce",
        storage_state=session,
    )
    return context.new_page()


if __name__ == "__main__":
    sys.exit(main())
