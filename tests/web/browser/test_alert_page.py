"""The alert page on a phone: from the link of a message to a released GPU, acknowledged and silenced alerts."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from monitor.sim.manifests import Workload
from monitor.sim.outages import OutageContext, image
from tests.support import wait_until
from tests.support.command import get
from tests.web.browser.conftest import Site, Tab

PHONE: dict[str, Any] = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
TIMEOUT_MILLISECONDS = 60_000


class Finger:
    """Taps, and counts them."""

    def __init__(self) -> None:
        self.taps = 0

    def tap(self, target: Locator) -> None:
        self.taps += 1
        target.tap(timeout=TIMEOUT_MILLISECONDS)


@pytest.fixture
def phone(site: Site, tabs: Callable[..., Tab]) -> Tab:
    """A page at phone size that is signed in."""
    tab = tabs(**PHONE)
    tab.page.goto(site.login_link())
    tab.page.get_by_role("button", name="sign out").wait_for()
    return tab


@pytest.fixture
def zombies(site: Site) -> Iterator[Callable[[str, int], str]]:
    """Lets a job finish without releasing its GPUs; the message about it is awaited, and its link returned."""

    def begin(name: str, gpus: int) -> str:
        def submit(stage: OutageContext) -> None:
            work = Workload(name, "nlp", "zhang", "vc-nlp", gpus, image("nlp", "bert:3"))
            pod = stage.submit(name, work, stage.node_with_room(gpus))
            stage.cluster.finish(pod, keep_processes=True)

        begun.append(name)
        site.story.call(submit)
        wait_until(lambda: bool(_links(site, name)), 90, "a message about it has a link")
        wait_until(lambda: len(_alerts(site, name)) == gpus, 60, "all of its GPUs are alerts")
        return _links(site, name)[-1]

    begun: list[str] = []
    yield begin
    for name in begun:
        site.story.call(partial(OutageContext.withdraw, outage=name))


def _links(site: Site, pod: str) -> list[str]:
    """Links of the messages about a pod."""
    texts = [message.text for message in site.story.robot.messages if pod in message.text]
    return [found for text in texts for found in re.findall(r"\((http://[^)]*/alerts[^)]*)\)", text)]


def _alerts(site: Site, pod: str) -> list[dict[str, Any]]:
    alerts = json.loads(get(f"{site.url}/v1/alerts")[2])
    return [each for each in alerts if each["labels"].get("pod") == pod and each["phase"] == "firing"]


def _is_free(site: Site, pod: str) -> bool:
    return not any(holder.pod == pod for gpu in site.view().gpus for holder in gpu.holders)


def no_overflow(page: Page) -> bool:
    return bool(page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth"))


def test_three_taps_from_a_message_to_released(site: Site, phone: Tab, zombies: Callable[[str, int], str]) -> None:
    page, finger = phone.page, Finger()
    page.set_content(f'<a id="message" href="{zombies("lone-bert", 1)}">Details</a>')
    finger.tap(page.locator("#message"))
    (alert,) = _alerts(site, "lone-bert")
    target = "{node}/{gpu}".format_map(alert["labels"])
    release = page.locator(f'button[data-act="release-gpu"][data-targets="{target}"]')
    expect(release).to_be_in_viewport(timeout=TIMEOUT_MILLISECONDS)
    finger.tap(release)
    finger.tap(page.get_by_role("dialog").get_by_role("button", name="Confirm"))
    assert finger.taps == 3
    expect(page.get_by_role("status")).to_have_text("Done.", timeout=TIMEOUT_MILLISECONDS)
    page.goto(f"{site.url}/alerts/{alert['fingerprint']}")  # where the link leads if the message has no other alert
    expect(page.locator("#timeline")).to_contain_text("Notified ops")
    expect(page.locator("#timeline")).to_contain_text("GPU released by", timeout=TIMEOUT_MILLISECONDS)
    wait_until(lambda: _is_free(site, "lone-bert"), 60, "the GPU is free")
    expect(page.locator("#timeline")).to_contain_text("Resolved", timeout=TIMEOUT_MILLISECONDS * 2)
    expect(page.locator("#alert")).to_contain_text("lasted")
    expect(page.locator("#alert")).to_contain_text("Notified: ops")
    expect(page.locator("#actions button")).to_have_count(0)
    assert no_overflow(page)
    phone.shoot("alert-phone-resolved")


def test_three_taps_from_a_message_about_several_gpus(
    site: Site, phone: Tab, zombies: Callable[[str, int], str]
) -> None:
    page, finger = phone.page, Finger()
    page.set_content(f'<a id="message" href="{site.url}/alerts?group=GpuZombie%7Ccause%3Dpod-finished">Details</a>')
    zombies("pair-bert", 2)
    finger.tap(page.locator("#message"))
    finger.tap(page.locator("#alerts tr", has_text="pair-bert").get_by_role("button", name="Release").first)
    finger.tap(page.get_by_role("dialog").get_by_role("button", name="Confirm"))
    assert finger.taps == 3
    expect(page.get_by_role("status")).to_have_text("Done.", timeout=TIMEOUT_MILLISECONDS)
    assert no_overflow(page)


def test_an_alert_is_acknowledged_and_silenced(site: Site, phone: Tab, zombies: Callable[[str, int], str]) -> None:
    page = phone.page
    zombies("known-bert", 1)
    page.goto(f"{site.url}/alerts/{_alerts(site, 'known-bert')[0]['fingerprint']}")
    page.get_by_role("button", name="Acknowledge").tap()
    page.get_by_role("dialog").get_by_role("button", name="Confirm").tap()
    expect(page.locator("#alert")).to_contain_text("Acknowledged by", timeout=TIMEOUT_MILLISECONDS)
    expect(page.locator("#timeline")).to_contain_text("Acknowledged by")
    page.locator("#silence summary").tap()
    page.get_by_label("Only this alert").check()
    page.get_by_role("button", name="Silence...").tap()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("known-bert", timeout=TIMEOUT_MILLISECONDS)
    dialog.get_by_role("button", name="Confirm").tap()
    expect(page.locator("#timeline")).to_contain_text("Silenced by", timeout=TIMEOUT_MILLISECONDS)
    phone.shoot("alert-phone-acknowledged")
    page.goto(f"{site.url}/alerts")  # later tests expect no silence
    page.locator("#silences tr", has_text="GpuZombie").get_by_role("button", name="End").tap()
    page.get_by_role("dialog").get_by_role("button", name="Confirm").tap()
    expect(page.locator("#silences")).to_contain_text("No silences", timeout=TIMEOUT_MILLISECONDS)


def test_a_visitor_reads_and_is_asked_to_sign_in(
    site: Site, tabs: Callable[..., Tab], zombies: Callable[[str, int], str]
) -> None:
    page = tabs(**PHONE).page
    zombies("read-bert", 1)
    page.goto(f"{site.url}/alerts/{_alerts(site, 'read-bert')[0]['fingerprint']}")
    expect(page.get_by_role("link", name="Sign in to act on this alert")).to_be_visible(timeout=TIMEOUT_MILLISECONDS)
    expect(page.locator("[data-act], [data-acknowledge], [data-silence]")).to_have_count(0)
