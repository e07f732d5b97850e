"""Every page of a cluster full of problems: it fits desktop and phone, is readable in both themes, and logs nothing."""

from __future__ import annotations

import json
import re
import time
import urllib.request
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Browser, Page

from monitor.access.owner_links import load_signer
from monitor.i18n import LANGUAGES
from monitor.sim.demo import KEY_FILE, POLICIES
from monitor.sim.manifests import Workload
from monitor.sim.outages import OUTAGES, OutageContext, image
from tests.support import wait_until
from tests.support.command import get
from tests.support.local_token import local_headers
from tests.web.browser.conftest import PHONE_SIZE, SCREENSHOTS, Site, running_site
from tests.web.browser.inspection import COLOUR_RULES, accessibility, overflows, wait_settled
from tests.web.browser.page_examples import EXAMPLES, FRAGMENTS, routes
from tests.web.browser.visits import Visit, signed_in

SIZES = {"desktop": {"width": 1440, "height": 900}, "phone": PHONE_SIZE}
THEMES = ("light", "dark")
# Languages, sizes and themes in which all rules of axe-core are tried; elsewhere those about colours, or none.
FULL_AXE = (("en", "desktop", "light"), ("en", "phone", "light"), ("zh", "desktop", "dark"))
COLOUR_AXE = (("en", "phone", "dark"),)
SHOTS = (("en", "desktop", "light"), ("zh", "phone", "dark"))
SOON = {
    "gpu": {"idle_after": "1s", "settle": "1s", "stale_after": "4s"},
    "rules": {
        "gpu_idle": {"warm_up": "1s", "warning_after": "1s", "notebook_warning_after": "1s"},
        "gpu_zombie": {"finished_after": "1s"},
        "pod_pending": {"waiting": "1s"},
        "service_down": {"after": "1s"},
        "agent_silent": {"silent_after": "4s"},
    },
}
FIRING = {
    "gpu-zombie", "gpu-idle", "pod-pending", "image-oversize", "shm-pressure", "service-down", "node-down",
    "registry-unreachable",
}  # fmt: skip
RELEASE = {"kind": "gpus", "name": "held-gpus", "zombie_after": "1s", "notice": "1h", "cron": "0 3 * * *"}
KEPT_JOB = Workload("kept-job", "nlp", "li", "vc-nlp", 1, image("nlp", "bert:3"))
SILENCE = {"matchers": ["alertname=ImageOversize"], "duration": "1h", "comment": "being rebuilt"}


@pytest.fixture(scope="module")
def troubled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A site on which all outages of the demo have begun, one alert is silenced, and one is resolved."""
    directory = tmp_path_factory.mktemp("troubled")
    keys = {"private_key_file": str(directory / KEY_FILE)}
    with running_site(directory, **SOON, cleanup={"agents": keys, "policies": [*POLICIES, RELEASE]}) as site:
        site.story.call(_finish_and_hold)
        for outage in OUTAGES:
            site.story.call(outage.begin)
        wait_until(lambda: _rules(site, "firing") >= FIRING, 60, "every outage is an alert")
        _post(site, "/v1/silences", SILENCE)
        site.story.call(lambda stage: setattr(stage, "portal_status", 200))
        wait_until(lambda: "service-down" in _rules(site, "resolved"), 60, "an alert is resolved")
        wait_until(lambda: _has_run(site), 60, "images have been cleaned up")
        yield site


@pytest.fixture(scope="module")
def visit(troubled: Site, chromium: Browser, owner_links: tuple[str, ...]) -> Iterator[Visit]:
    with signed_in(troubled, chromium, owner_links) as visit:
        yield visit


@pytest.fixture(scope="module")
def owner_links(troubled: Site) -> tuple[str, ...]:
    """Links of notices: about a pod that is due, in a group and in private, one that was just kept, the same in a new
    notice, one not due.
    """
    wait_until(lambda: len(_due(troubled)) >= 2, 60, "two pods are due for release")
    due = _due(troubled)
    (kept,) = (item for item in due if KEPT_JOB.name in item["name"])
    other = next(item for item in due if item != kept)
    signer = load_signer(str(troubled.state))

    def link(item: str, owner: str, *, may_release: bool = False) -> str:
        return f"/keep/{signer.sign(RELEASE['name'], item, owner, time.time() + 3600, may_release=may_release)}"

    used = link(kept["id"], kept["owner"])
    answer = urlencode({"for": 4 * 3600, "reason": "debugging until tonight"}).encode()
    urllib.request.urlopen(troubled.url + used, answer, timeout=60)
    group, private = (link(other["id"], other["owner"], may_release=may_release) for may_release in (False, True))
    return group, private, used, link(kept["id"], kept["owner"]), link("gpu-pod/gone", "li")


def _due(site: Site) -> list[dict[str, Any]]:
    plans = json.loads(get(f"{site.url}/v1/cleanup/plan?policy={RELEASE['name']}")[2])
    return [item for plan in plans for item in plan.get("items", ())]


def _finish_and_hold(stage: OutageContext) -> None:
    """A job finishes but keeps its GPU."""
    pod = stage.submit(KEPT_JOB.name, KEPT_JOB, stage.node_with_room(1))
    stage.cluster.finish(pod, keep_processes=True)


def _rules(site: Site, phase: str) -> set[str]:
    return {alert["rule"] for alert in json.loads(get(f"{site.url}/v1/alerts")[2]) if alert["phase"] == phase}


def _has_run(site: Site) -> bool:
    return any(run["run"]["state"] == "ended" for run in json.loads(get(f"{site.url}/v1/cleanup/history")[2]))


def _post(site: Site, path: str, content: dict[str, Any]) -> None:
    headers = local_headers(site.state) | {"Content-Type": "application/json"}
    urllib.request.urlopen(urllib.request.Request(site.url + path, json.dumps(content).encode(), headers), timeout=60)


def test_every_route_has_an_example() -> None:
    assert EXAMPLES.keys() | FRAGMENTS == routes()
    assert not EXAMPLES.keys() & FRAGMENTS


@pytest.mark.parametrize("lang", LANGUAGES)
@pytest.mark.parametrize("route", EXAMPLES)
def test_a_page_fits_and_is_readable_and_fails_nothing(visit: Visit, route: str, lang: str) -> None:
    visit.speak(lang)
    problems: list[str] = []
    addresses = list(EXAMPLES[route](visit.objects))
    assert addresses
    for number, address in enumerate(addresses):
        visit.page.goto(visit.site.url + address)
        name = re.sub(r"\W+", "-", f"page-{route}-{number}").replace("--", "-")
        problems += [f"{address}: {problem}" for problem in inspect(visit.page, lang, name)]
    assert problems + visit.witness.complaints == []


def inspect(page: Page, lang: str, name: str, part: str = "html") -> list[str]:
    """Problems of an open page at every size and in both themes; of accessibility, those of a part of it."""
    problems = []
    for theme in THEMES:
        page.emulate_media(color_scheme="dark" if theme == "dark" else "light")
        for size, pixels in SIZES.items():
            page.set_viewport_size({"width": pixels["width"], "height": pixels["height"]})
            wait_settled(page)
            where = (lang, size, theme)
            found = overflows(page)
            if where in FULL_AXE or where in COLOUR_AXE:
                found += accessibility(page, part, None if where in FULL_AXE else COLOUR_RULES)
            if where in SHOTS:
                SCREENSHOTS.mkdir(parents=True, exist_ok=True)
                page.screenshot(path=SCREENSHOTS / f"{name}-{'-'.join(where)}.png", full_page=True)
            problems += [f"{' '.join(where)}: {problem}" for problem in found]
    return problems


def test_a_dialog_fits_and_is_readable(visit: Visit) -> None:
    page = visit.page
    visit.speak("en")
    problems = []
    for number, (address, begin) in enumerate(DIALOGS.items()):
        page.set_viewport_size({"width": 1440, "height": 900})
        page.goto(visit.site.url + address)
        wait_settled(page)
        begin(page)
        page.locator("#confirm-yes:enabled").wait_for()
        problems += [f"{address}: {problem}" for problem in inspect(page, "en", f"dialog-{number}", "#confirm")]
    assert problems + visit.witness.complaints == []


def _silence(page: Page) -> None:
    page.locator("[name=matchers]").fill("severity=critical")
    page.get_by_role("button", name="Silence...").click()


def _release(page: Page) -> None:
    page.get_by_role("button", name="Release").first.click()


def _run(page: Page) -> None:
    page.locator("[data-run]").first.click()


DIALOGS = {"/alerts": _silence, "/alerts?rule=gpu-zombie": _release, "/cleanup": _run}
