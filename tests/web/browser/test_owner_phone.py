"""Owners answer notices on a phone: they keep for a while or until a time, and release after a confirmation."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from monitor.access.owner_links import load_signer
from monitor.i18n import say
from monitor.sim.demo import KEY_FILE
from monitor.sim.manifests import Workload
from monitor.sim.outages import OutageContext, image
from tests.support import wait_until
from tests.support.command import get
from tests.support.receivers.bots import WeComBot
from tests.web.browser.conftest import SCREENSHOTS, Site, running_site
from tests.web.browser.inspection import accessibility, overflows
from tests.web.browser.owner_phone import KEEP_LINK, keep_for, phone, wait_link

POLICY = {
    "kind": "gpus", "name": "held-gpus", "mode": "enforce", "announce": "0s", "zombie_after": "1s", "notice": "1h",
    "cron": "* * * * *",
}  # fmt: skip
JOBS = tuple(Workload(f"job-{number}", "nlp", "li", "vc-nlp", 1, image("nlp", "bert:3")) for number in (1, 2, 3))


@pytest.fixture(scope="module")
def robot() -> Iterator[WeComBot]:
    with WeComBot() as robot:
        yield robot


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory, robot: WeComBot) -> Iterator[Site]:
    """Finished jobs that still hold their GPUs, and a policy that notifies their owners once a minute."""
    directory = tmp_path_factory.mktemp("owners")
    alerts = {"receivers": [{"name": "group", "kind": "wecom", "url": robot.url}], "language": "zh"}
    cleanup = {"agents": {"private_key_file": str(directory / KEY_FILE)}, "policies": [POLICY]}
    limits, rules = {"settle": "1s", "stale_after": "4s"}, {"gpu_zombie": {"finished_after": "1s"}}
    more = {"alerts": alerts, "cleanup": cleanup, "gpu": limits, "rules": rules, "timezone": "Asia/Shanghai"}
    with running_site(directory, **more) as site:
        site.story.call(_finish_and_hold)
        wait_until(lambda: len(_due(site)) == len(JOBS), 60, "every job is due for release")
        yield site


def _finish_and_hold(stage: OutageContext) -> None:
    for work in JOBS:
        stage.cluster.finish(stage.submit(work.name, work, stage.node_with_room(1)), keep_processes=True)


def _plans(site: Site) -> list[dict[str, Any]]:
    plans: list[dict[str, Any]] = json.loads(get(f"{site.url}/v1/cleanup/plan?policy={POLICY['name']}")[2])
    return plans


def _due(site: Site) -> dict[str, str]:
    """Ids of what is due, by name."""
    return {item["name"]: item["id"] for plan in _plans(site) for item in plan.get("items", ())}


def _kept(site: Site) -> dict[str, dict[str, Any]]:
    return {
        item["name"]: item for plan in _plans(site) for item in plan.get("kept", ()) if item["protection"] == "kept"
    }


def _inspect(page: Page, name: str) -> None:
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=SCREENSHOTS / f"{name}.png")
    assert overflows(page) + accessibility(page) == []


def test_an_alert_about_a_zombie_has_a_link_for_its_owner(site: Site, robot: WeComBot) -> None:
    title = say("zh", "rule.gpu-zombie", {})

    def found() -> bool:
        texts = [message[message["msgtype"]]["content"] for message in robot.taken]
        return any(title in text and KEEP_LINK.search(text) for text in texts)

    wait_until(found, 60, f"an alert of {len(_due(site))} zombies has a link")


def test_an_owner_keeps_a_gpu_with_the_link_in_the_group(site: Site, robot: WeComBot, chromium: Browser) -> None:
    url = wait_link(robot, JOBS[0].name)
    with phone(chromium) as page:
        page.goto(url)
        assert page.get_by_role("button", name="立即释放").count() == 0
        _inspect(page, "owner-group-zh")
        keep_for(page, url, "4 小时", "明早继续")
        _inspect(page, "owner-kept-zh")
    (kept,) = _kept(site).values()
    assert (JOBS[0].name in kept["name"], kept["detail"]) == (True, "li: 明早继续")
    assert kept["until"] == pytest.approx(time.time() + 4 * 3600, abs=120)


def test_an_owner_keeps_a_gpu_until_a_time(site: Site, robot: WeComBot, chromium: Browser) -> None:
    url = wait_link(robot, JOBS[1].name)
    until = time.time() + 26 * 3600
    with phone(chromium) as page:
        page.goto(url)
        assert not page.locator("#until").is_visible()
        page.get_by_label("保留时长").select_option(label="到指定时间")
        field = page.get_by_label("保留到 (Asia/Shanghai)")
        field.fill(time.strftime("%Y-%m-%dT%H:%M", time.gmtime(until + 8 * 3600)))
        _inspect(page, "owner-until-zh")
        page.get_by_role("button", name="保留", exact=True).tap()
        page.get_by_text("已保留到").wait_for()
    (kept,) = (item for name, item in _kept(site).items() if JOBS[1].name in name)
    assert kept["until"] == pytest.approx(until, abs=60)


def test_an_owner_releases_a_gpu_with_a_private_link(site: Site, chromium: Browser) -> None:
    (name,) = (name for name in _due(site) if JOBS[2].name in name)
    link = load_signer(str(site.state)).sign(POLICY["name"], _due(site)[name], "li", time.time() + 60, may_release=True)
    with phone(chromium) as page:
        page.goto(f"{site.url}/keep/{link}?lang=en")
        _inspect(page, "owner-private-en")
        page.get_by_role("button", name="Release now").tap()
        assert page.get_by_label("I no longer need it").evaluate("box => box.validity.valueMissing")
        page.get_by_label("I no longer need it").check()
        page.get_by_role("button", name="Release now").tap()
        page.get_by_text("释放。").wait_for()
        _inspect(page, "owner-released-zh")
    wait_until(lambda: name not in _due(site), 60, "its process has ended")
