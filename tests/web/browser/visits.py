"""A signed-in page of a daemon, and the objects that its pages are about."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from playwright.sync_api import Browser, Page

from tests.support.command import get
from tests.web.browser.conftest import Site
from tests.web.browser.inspection import Witness
from tests.web.browser.page_examples import Objects

TIMEOUT_MILLISECONDS = 120_000  # a screenshot of a long page takes long on a machine with fully busy cores
MISSING = re.compile(r"nothing-like-this|/99$|/0123456789abcdef")  # in EXAMPLES


@dataclass
class Visit:
    """A signed-in page of a site, its complaints, and what there is to see."""

    site: Site
    page: Page
    witness: Witness
    objects: Objects

    def speak(self, lang: str) -> None:
        """Choose the language of the next pages, and forget the complaints of earlier ones."""
        self.page.context.add_cookies([{"name": "lang", "value": lang, "url": self.site.url}])
        self.witness.complaints.clear()


@contextmanager
def signed_in(site: Site, chromium: Browser, owner_links: tuple[str, ...] = ()) -> Iterator[Visit]:
    """A page that is signed in as an admin, in a context of its own. It also visits these links of notices."""
    context = chromium.new_context()
    context.set_default_timeout(TIMEOUT_MILLISECONDS)
    page = context.new_page()
    witness = Witness(page, expected=MISSING)
    page.goto(site.login_link())
    page.get_by_role("button", name="sign out").wait_for()
    view, alerts = (json.loads(get(site.url + path)[2]) for path in ("/v1/view", "/v1/alerts"))
    yield Visit(site, page, witness, Objects(view, alerts, owner_links))
    context.close()
