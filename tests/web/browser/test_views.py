"""Every view in a browser: rendering, live updates, languages, themes, keyboard, and phone layout."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import expect

from monitor.facts.cluster import GpuState
from monitor.sim.outages import OUTAGES
from tests.support import wait_until
from tests.web.browser.conftest import Site, Tab

BEGIN = {outage.name: outage.begin for outage in OUTAGES}
END = {outage.name: outage.end for outage in OUTAGES}
TIMEOUT_MILLISECONDS = 30_000
PHONE = {"width": 390, "height": 844}

VIEWS = [
    ("overview", "/", "#health .verdict"),
    ("nodes", "/nodes", "#nodes a[href='/nodes/gpu01']"),
    ("node", "/nodes/gpu01", "#cards tbody tr:nth-child(8)"),
    ("gpu", "/gpus/gpu01/0", "#facts .state"),
    ("jobs", "/pods", "#pods tbody tr"),
    ("users", "/users", "#users tbody tr"),
    ("user", "/users/li", "#facts dl"),
    ("queues", "/queues", "#queues tbody tr"),
    ("queue", "/queues/vc-vision", "#facts dl"),
    ("why", "/why?q=li", "#found li"),
    ("fits", "/fits?gpus=16", "#answer li"),
    ("alerts", "/alerts", "#silences"),
    ("cleanup", "/cleanup", "#plans :text('node-images')"),
    ("report", "/report", "main table"),
    ("audit", "/audit", "main .note"),
    ("login", "/login", "form"),
    ("nothing", "/nodes/nope", "#gone"),
]


def test_rows_are_cards_on_a_phone_and_stay_so_when_they_are_renewed(site: Site, tabs: Callable[..., Tab]) -> None:
    page = tabs(viewport=PHONE).page
    page.goto(f"{site.url}/nodes")
    cell = page.locator("#nodes tbody tr", has_text="gpu02").locator("td:nth-child(4)")
    expect(cell).to_have_attribute("data-label", "Free GPUs")
    assert cell.evaluate("each => getComputedStyle(each, '::before').content") == '"Free GPUs"'
    page.evaluate("document.querySelector('#nodes').dataset.v = 'old'")
    expect(page.locator("#nodes")).not_to_have_attribute("data-v", "old")
    expect(cell).to_have_attribute("data-label", "Free GPUs")
    page.get_by_role("link", name="Temperature").click()
    expect(page).to_have_url(f"{site.url}/nodes?sort=temperature")


@pytest.mark.parametrize(("name", "path", "shows"), VIEWS, ids=[view[0] for view in VIEWS])
def test_every_view_renders(site: Site, tabs: Callable[..., Tab], name: str, path: str, shows: str) -> None:
    tab = tabs()
    tab.page.goto(site.url + path)
    expect(tab.page.locator(shows).first).to_be_visible()
    tab.page.wait_for_timeout(100)  # time for script errors
    tab.shoot(name)


def test_every_view_fits_on_a_phone(site: Site, tabs: Callable[..., Tab]) -> None:
    tab = tabs(viewport=PHONE)
    too_wide: dict[str, Any] = {}
    for name, path, shows in VIEWS:
        tab.page.goto(site.url + path)
        expect(tab.page.locator(shows).first).to_be_attached()
        width = tab.page.evaluate("document.documentElement.scrollWidth")
        cut = tab.page.locator(".panel").evaluate_all(
            "all => all.filter(each => each.scrollWidth > each.clientWidth + 1).map(each => each.textContent.trim())"
        )
        too_wide |= {name: (width, cut)} if width > PHONE["width"] or cut else {}
        if name in ("overview", "node"):
            tab.shoot(f"{name}-phone")
    assert too_wide == {}


def test_an_outage_appears_on_an_open_page_and_goes(site: Site, tabs: Callable[..., Tab]) -> None:
    tab = tabs()
    tab.page.goto(site.url)
    zombies = tab.page.locator(".map a.z")
    expect(zombies).to_have_count(0)
    site.story.call(BEGIN["zombie job"])
    wait_until(lambda: _zombies(site), 30, "the daemon sees the zombie")
    expect(zombies).to_have_count(2, timeout=TIMEOUT_MILLISECONDS)
    expect(tab.page.locator("#problems")).to_contain_text("GPU held by a finished pod", timeout=TIMEOUT_MILLISECONDS)
    tab.shoot("outage")
    site.story.call(END["zombie job"])
    wait_until(lambda: not _zombies(site), 30, "the daemon sees it gone")
    expect(zombies).to_have_count(0, timeout=TIMEOUT_MILLISECONDS)


def _zombies(site: Site) -> bool:
    return any(gpu.state is GpuState.ZOMBIE for gpu in site.view().gpus)


def test_a_job_that_waits_is_explained(site: Site, tabs: Callable[..., Tab]) -> None:
    tab = tabs()
    site.story.call(BEGIN["8-GPU job that fits no node"])
    try:
        tab.page.goto(site.url)
        waiting = tab.page.locator("#waiting a", has_text="nlp/llama-8gpu-0")
        waiting.click(timeout=TIMEOUT_MILLISECONDS)
        expect(tab.page.locator("#why .answer")).to_contain_text("No single node has 8 free GPUs")
        tab.page.locator("header [data-search]").fill("zhang")
        tab.page.keyboard.press("Enter")
        expect(tab.page.locator("#found .answer").first).to_contain_text("No single node has 8 free GPUs")
    finally:
        site.story.call(lambda stage: stage.withdraw("fit"))


def test_the_language_is_switched_and_remembered(site: Site, tabs: Callable[..., Tab]) -> None:
    page = tabs().page
    page.goto(f"{site.url}/nodes/gpu01")
    page.get_by_role("link", name="中文").click()
    expect(page.locator("h1")).to_have_text("节点 gpu01")
    page.get_by_role("link", name="总览").click()
    expect(page.locator("#legend")).to_contain_text("使用中")
    page.get_by_role("link", name="EN", exact=True).click()
    expect(page.locator("#legend")).to_contain_text("busy")


def test_a_browser_that_speaks_chinese_gets_chinese(site: Site, tabs: Callable[..., Tab]) -> None:
    tab = tabs(locale="zh-CN", color_scheme="dark")
    tab.page.goto(site.url)
    expect(tab.page.locator("#legend")).to_contain_text("使用中")
    tab.shoot("overview-zh-dark")


def test_the_colours_are_switched_and_remembered(site: Site, tabs: Callable[..., Tab]) -> None:
    page = tabs(color_scheme="light").page
    page.goto(site.url)
    ground = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(ground)
    page.get_by_role("button", name="Light or dark theme").click()
    dark = page.evaluate(ground)
    page.reload()
    assert dark != light
    assert page.evaluate(ground) == dark


def test_one_state_alone_and_some_nodes_alone(site: Site, tabs: Callable[..., Tab]) -> None:
    page = tabs().page
    page.goto(site.url)
    page.get_by_role("button", name="free").click()
    expect(page.get_by_role("button", name="free")).to_have_attribute("aria-pressed", "true")
    assert page.locator(".map a.b3").first.evaluate("each => getComputedStyle(each).opacity") != "1"
    page.get_by_placeholder("Node or owner").fill("gpu03")
    expect(page.locator(".map .node:visible")).to_have_count(1)
    page.wait_for_timeout(2000)  # the filter survives updates
    expect(page.locator(".map .node:visible")).to_have_count(1)


def test_the_page_is_used_by_keyboard(site: Site, tabs: Callable[..., Tab]) -> None:
    page = tabs().page
    page.goto(site.url)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    page.locator(".map a.c").first.focus()
    page.wait_for_timeout(3200)  # the focus survives two updates
    assert page.evaluate("document.activeElement.matches('.map a.c')")
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_contain_text("gpu01 / GPU 0")


def test_what_is_renewed_is_nothing_when_nothing_changes(site: Site, tabs: Callable[..., Tab]) -> None:
    page = tabs().page
    page.goto(f"{site.url}/queues")
    with page.expect_response(lambda answer: "v=" in answer.url) as asked:
        pass
    assert asked.value.status == 204


def test_the_search_begins_with_a_slash_and_suggests_names(site: Site, tabs: Callable[..., Tab]) -> None:
    page = tabs().page
    page.goto(site.url)
    page.keyboard.press("/")
    search = page.get_by_role("combobox", name="Pod, job or user: why?")
    expect(search).to_be_focused()
    page.keyboard.type("gpu0")
    expect(page.locator("#suggestions option[label=Node]")).to_have_count(5)
    expect(page.locator("#suggestions option[label=Node]").first).to_have_attribute("value", "gpu01")
    page.keyboard.type("3/")
    assert search.input_value() == "gpu03/"
    page.keyboard.press("Backspace")
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_contain_text("gpu03")
