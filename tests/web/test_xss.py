"""Hostile names, labels and events are shown as text and never executed.

The pages of a daemon on a simulated cluster are crawled, and opened in a real browser.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from urllib.parse import quote, urljoin, urlsplit

import pytest

from monitor.sim.manifests import Workload
from monitor.sim.outages import OutageContext
from tests.support import need, wait_until
from tests.web.cluster import ACCESS, Client, DaemonSite, daemon_on

CHROMIUM = "/usr/bin/chromium"
NAME = "<img src=x onerror=pwned=1>\"'`{{7*7}}"
TEXT = "</title></textarea></script><script>pwned=1</script><svg onload=pwned=1><a href=javascript:pwned=1>x"
PLANT_SCRIPT = "document.body.appendChild(Object.assign(document.createElement('script'), {text: 'pwned=1'}))"
MAX_PAGES = 60
FAILED = "failed"
STARTS = ("/", "/nodes", "/pods", "/users", "/queues", "/fits", "/alerts", "/cleanup", "/report", "/audit", "/why")


def begin(stage: OutageContext) -> None:
    """Submit two pods with hostile names: one runs, one waits for more GPUs than exist."""
    image = f"harbor.lab/{TEXT}:1"
    stage.submit("evil", Workload(NAME, NAME, NAME, NAME, 1, image, labels={"note": TEXT}), "gpu01")
    waiting = stage.submit("evil", Workload(f"waits {NAME}", "lab", NAME, NAME, 16, image, labels={NAME: TEXT}))
    stage.cluster.record_event(waiting, "FailedScheduling", TEXT)
    stage.cluster.record_event(waiting, TEXT, TEXT)


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DaemonSite]:
    with daemon_on(tmp_path_factory.mktemp("daemon"), ACCESS) as made:
        made.story.call(begin)
        wait_until(lambda: made.gpus_of(NAME), 30, "the pod is seen")
        silence = {"matchers": [f"pod={NAME}"], "duration": "1h", "author": NAME, "comment": TEXT}
        made.client("admin").post("/v1/silences", silence)
        made.client("admin").post("/v1/cleanup/run", {"policy": TEXT, "by": NAME})  # refused and audited
        yield made


@pytest.fixture(scope="module")
def root(daemon: DaemonSite) -> Client:
    client = Client(daemon.url)
    assert client.sign_in("root").status == 303
    return client


class Page(HTMLParser):
    """What a browser would execute on a page, and the links of the page."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.runs: list[str] = []
        self.links: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if (tag == "script" and "src" not in given) or tag in ("style", "iframe", "object", "embed", "base"):
            self.runs.append(tag)
        self.runs += [f"{tag} {name}" for name in given if name.startswith("on") or name in ("style", "srcdoc")]
        targets = [
            given[name] for name in ("href", "src", "action", "formaction", "hx-get", "hx-post") if name in given
        ]
        for link in targets:
            if re.match(r"\s*[a-z][a-z0-9+.-]*:|\s*//", link, re.IGNORECASE):
                self.runs.append(f"{tag} {link}")
        self.links += [given["href"]] if tag == "a" and given.get("href", "").startswith("/") else []


def crawl(client: Client, starts: tuple[str, ...]) -> dict[str, str]:
    """The reachable pages by path."""
    waiting, found = list(starts), dict[str, str]()
    while waiting and len(found) < MAX_PAGES:
        path = waiting.pop(0)
        if path in found:
            continue
        answer = client.get(path)
        if answer.status >= 500:
            found[path] = FAILED
        if "text/html" not in answer.headers.get("content-type", ""):
            continue
        found[path] = answer.body
        links = (urljoin(path, link).partition("#")[0] for link in Page(answer.body).links)
        waiting += [quote(link, safe="/%?=&:;,+@!$()*~") for link in links if not link.startswith("/v1/")]
    return found


@pytest.fixture(scope="module")
def pages(root: Client) -> dict[str, str]:
    name, waits = quote(NAME, safe=""), quote(f"waits {NAME}", safe="")
    evil = (
        f"/pods/{name}/{name}", f"/users/{name}", f"/queues/{name}", f"/nodes/{name}", f"/pods/lab/{waits}",
        f"/why?q={waits}", f"/why?q={quote(TEXT)}", f"/alerts?group={name}", f"/login?next={name}", f"/alerts/{name}",
        f"/?lang={name}", f"/report?by={name}", f"/cleanup/plan?policy={name}",
    )  # fmt: skip
    return crawl(root, (*evil, *STARTS))


def test_no_page_fails(pages: dict[str, str]) -> None:
    assert [path for path, text in pages.items() if text == FAILED] == []


def test_nothing_on_any_page_runs(pages: dict[str, str]) -> None:
    found = {path: Page(text).runs for path, text in pages.items()}
    assert {path: runs for path, runs in found.items() if runs} == {}
    assert len(pages) > 15


@pytest.mark.parametrize("what", [NAME, TEXT[:20]], ids=["names", "texts of events"])
def test_it_is_shown_as_it_is(pages: dict[str, str], what: str) -> None:
    """The hostile texts do reach the pages; otherwise the test above would prove nothing."""
    shown = [path for path, text in pages.items() if _escaped(what) in text]
    assert shown, f"on none of {list(pages)}"
    assert not any(what in text for text in pages.values())


def _escaped(text: str) -> str:
    return (
        text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace('"', "&#34;").replace("'", "&#39;")
    )


def test_what_is_asked_for_is_not_reflected(root: Client) -> None:
    for path in (f"/nope/{quote(TEXT)}", f"/v1/nope/{quote(TEXT)}", f"/v1/why?name={quote(TEXT)}&lang=x"):
        answer = root.get(path)
        assert "text/html" not in answer.headers["content-type"]
        assert answer.headers["x-content-type-options"] == "nosniff"


def test_in_a_real_browser(daemon: DaemonSite, pages: dict[str, str]) -> None:
    """Sign in with a link, and open the pages with hostile texts."""
    need(os.path.exists(CHROMIUM), "chromium")
    from playwright.sync_api import sync_playwright

    link = daemon.client("admin").post("/v1/login-link", {}).json["path"]
    shown = [path for path in pages if _escaped(NAME) in pages[path] or "pwned" in path][:12]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        try:
            page = browser.new_page()
            wrong: list[str] = []
            page.on("dialog", lambda dialog: wrong.append(dialog.message))
            page.on("console", lambda said: wrong.append(said.text) if "Content Security" in said.text else None)
            page.goto(daemon.url + link)
            page.wait_for_url(lambda url: urlsplit(url).path == "/")
            assert "code=" not in page.url
            assert page.request.get(f"{daemon.url}/v1/me").json()["role"] == "admin"
            for path in shown:
                page.goto(daemon.url + path)
                assert page.evaluate("typeof window.pwned") == "undefined", path
                assert page.locator("img[src=x]").count() == 0
            assert wrong == []
            page.evaluate(PLANT_SCRIPT)  # what an escape that was forgotten somewhere would do
            assert page.evaluate("typeof window.pwned") == "undefined", "inline scripts are forbidden"
            assert (
                page.evaluate("document.cookie").find("gpuwarden-") == -1
            )  # the session cookie is not accessible to scripts
        finally:
            browser.close()
