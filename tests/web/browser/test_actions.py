"""Actions on the page: an admin releases GPUs, deletes pods, cordons, silences, cleans up; a viewer cannot."""

from __future__ import annotations

from collections.abc import Callable

from playwright.sync_api import Page, expect

from monitor.facts.cluster import GpuState
from monitor.sim.manifests import Workload
from monitor.sim.outages import OUTAGES, OutageContext, image
from tests.support import wait_until
from tests.web.browser.conftest import Site, Tab

BEGIN = {outage.name: outage.begin for outage in OUTAGES}
END = {outage.name: outage.end for outage in OUTAGES}
TIMEOUT_MILLISECONDS = 30_000


def zombies(site: Site) -> list[tuple[str, int]]:
    return [(gpu.node, gpu.index) for gpu in site.view().gpus if gpu.state is GpuState.ZOMBIE]


def confirm(page: Page, says: str) -> None:
    """Check the preview in the dialog, and confirm."""
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text(says, timeout=TIMEOUT_MILLISECONDS)
    dialog.get_by_role("button", name="Confirm").click()


def done(page: Page) -> None:
    expect(page.get_by_role("status")).to_have_text("Done.", timeout=TIMEOUT_MILLISECONDS)


def test_an_admin_releases_a_zombie_and_sees_it_free(site: Site, admin: Tab) -> None:
    site.story.call(BEGIN["zombie job"])
    wait_until(lambda: len(zombies(site)) == 2, 30, "the daemon sees the zombies")
    page = admin.page
    for node, index in zombies(site):
        page.goto(f"{site.url}/gpus/{node}/{index}")
        page.get_by_role("button", name="Release").click()
        admin.shoot("release")
        confirm(page, "python3")
        done(page)
        expect(page.locator("#facts .state")).to_have_text("free", timeout=TIMEOUT_MILLISECONDS)
    page.goto(f"{site.url}/audit")
    expect(page.locator("#audit tbody")).to_contain_text("release GPU")
    site.story.call(lambda stage: stage.withdraw("zombie"))


def test_a_cancelled_release_does_nothing(site: Site, admin: Tab) -> None:
    site.story.call(BEGIN["zombie job"])
    wait_until(lambda: len(zombies(site)) == 2, 30, "the daemon sees the zombies")
    node, index = zombies(site)[0]
    admin.page.goto(f"{site.url}/gpus/{node}/{index}")
    admin.page.get_by_role("button", name="Release").click()
    dialog = admin.page.get_by_role("dialog")
    expect(dialog).to_contain_text("python3", timeout=TIMEOUT_MILLISECONDS)
    admin.page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    assert (node, index) in zombies(site)
    site.story.call(END["zombie job"])


def test_a_viewer_has_nothing_to_press(site: Site, tabs: Callable[..., Tab]) -> None:
    page = tabs().page
    for path in ("/nodes/gpu01", "/pods", "/alerts", "/cleanup"):
        page.goto(site.url + path)
        expect(page.locator("[data-act], [data-run], [data-restore], [data-silence]")).to_have_count(0)
    ask = """() => fetch("/v1/actions/cordon", {method: "POST", headers: {"Content-Type": "text/plain"},
        body: JSON.stringify({nodes: ["gpu01"]})}).then((answer) => answer.status)"""
    assert page.evaluate(ask) in (401, 403, 415)
    assert all(node.schedulable for node in site.view().nodes)


def test_an_admin_stops_several_jobs_at_once(site: Site, admin: Tab) -> None:
    def submit(stage: OutageContext) -> None:
        for number in (1, 2, 3):
            work = Workload(f"batch-{number}", "nlp", "zhao", "vc-nlp", 0, image("nlp", "bert:1"))
            stage.submit("batch", work, "gpu02")

    site.story.call(submit)
    page = admin.page
    page.goto(f"{site.url}/pods?user=zhao&what=all&q=batch-")
    expect(page.locator("#pods tbody tr")).to_have_count(3, timeout=TIMEOUT_MILLISECONDS)
    for name in ("nlp/batch-1", "nlp/batch-2"):
        page.get_by_label(f"Select {name}").check()
    page.wait_for_timeout(2000)  # the selection survives updates of the table
    page.get_by_role("button", name="Stop 2").click()
    confirm(page, "nlp/batch-2")
    done(page)
    expect(page.locator("#pods tbody tr")).to_have_count(1, timeout=TIMEOUT_MILLISECONDS)
    site.story.call(lambda stage: stage.withdraw("batch"))


def test_an_admin_cordons_a_node_and_lets_jobs_on_it_again(site: Site, admin: Tab) -> None:
    page = admin.page
    page.goto(f"{site.url}/nodes/gpu05")
    page.get_by_role("button", name="Cordon", exact=True).click()
    confirm(page, "gpu05")
    done(page)
    expect(page.locator("#facts")).to_contain_text("cordoned", timeout=TIMEOUT_MILLISECONDS)
    page.get_by_role("button", name="Uncordon").click()
    confirm(page, "gpu05")
    expect(page.locator("#facts")).to_contain_text("ready", timeout=TIMEOUT_MILLISECONDS)


def test_an_admin_silences_and_ends_it(site: Site, admin: Tab) -> None:
    page = admin.page
    page.goto(f"{site.url}/alerts")
    page.get_by_label("Matchers").fill("node=gpu06")
    page.get_by_label("Comment", exact=True).fill("new fans")
    page.get_by_role("button", name="Silence...").click()
    confirm(page, "Mutes notifications for alerts with these labels")
    done(page)
    expect(page.locator("#silences")).to_contain_text("new fans", timeout=TIMEOUT_MILLISECONDS)
    page.get_by_role("button", name="End").click()
    page.get_by_role("dialog").get_by_role("button", name="Confirm").click()
    expect(page.locator("#silences")).to_contain_text("No silences", timeout=TIMEOUT_MILLISECONDS)


def test_what_fills_a_disk_is_planned_for_and_removed(site: Site, admin: Tab) -> None:
    page = admin.page
    site.story.call(BEGIN["disk filling"])
    disk = site.story.call(lambda stage: stage.cluster.nodes["gpu04"].runtime_disk)
    full = disk.used
    page.goto(f"{site.url}/cleanup")
    item = page.locator("#plans", has_text="harbor.lab/old/experiment")
    for _ in range(10):
        if item.is_visible():
            break
        page.wait_for_timeout(1000)
        page.get_by_role("button", name="Plan again").click()
    page.get_by_role("button", name="Run now").click()
    confirm(page, "harbor.lab/old/experiment")
    done(page)
    expect(page.locator("#runs")).to_contain_text("on demand", timeout=TIMEOUT_MILLISECONDS)
    wait_until(lambda: disk.used < 0.9 * full, 30, "images are gone from the simulated disk")
    admin.shoot("cleanup-run")
    site.story.call(END["disk filling"])
