"""The heat map of the overview in a browser: colours, values, keyboard, groups of nodes, themes, unknown cells."""

from __future__ import annotations

import math
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from monitor.facts.cluster import ClusterView, GpuState, GpuView, NodeView
from monitor.history.reader import HistoryReader
from monitor.history.recorder import HistoryRecorder
from monitor.history.store import FILE, HistoryStore
from monitor.present.findings import LocalizedFinding
from monitor.queries.history import HistoryQueries
from monitor.web.app import create_app
from monitor.web.context import PageData
from monitor.web.server import WebServer
from tests.support.clock import FakeClock
from tests.web.browser.conftest import PHONE_SIZE, Tab
from tests.web.test_app import FakeCluster

FEW, MANY = 6, 120
HOURS, STEP_SECONDS = 26, 600.0
SIZES = {"desktop": {"width": 1440, "height": 900}, "phone": PHONE_SIZE}
SILENT, IDLE = 2, 4  # numbers of a node that is unknown for eight hours, and of one that does nothing
# Colours of a row of pixels in the middle of the cells that are about so many hours old: red, green, blue and opacity.
COLOURS = """(canvas, [row, rows, hours]) => {
  const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext("2d", { willReadFrequently: true });
  copy.drawImage(canvas, 0, 0);
  const height = canvas.height - 20 * devicePixelRatio, x = Math.round(canvas.width * (1 - 0.8 * hours / 24));
  return [...copy.getImageData(x, Math.round((row + 0.5) * height / rows), 30, 1).data];
}"""


class World(FakeCluster):
    """A cluster of several nodes, without findings."""

    def __init__(self, seen: ClusterView) -> None:
        super().__init__()
        self._seen = seen

    def view(self) -> ClusterView:
        return self._seen

    def findings(self, _lang: str) -> tuple[LocalizedFinding, ...] | None:
        return ()


def name_of(node: int) -> str:
    return f"gpu-{node:03d}.rack-{node // 8}.example"


def load(node: int, hours_ago: float) -> float | None:
    if node == SILENT and 8 <= hours_ago < 16:
        return None
    if node == IDLE:
        return 0.0
    return min(1.0, max(0.05, 0.55 + 0.4 * math.sin(node / 2 + hours_ago / 3)))


def view(at: float, nodes: int, hours_ago: float) -> ClusterView:
    gpus = tuple(
        GpuView(node=name_of(node), state=GpuState.BUSY, index=index, utilization_ratio=load(node, hours_ago))
        for node in range(nodes)
        for index in range(2)
    )
    return ClusterView(
        at=at, gpus=gpus, nodes=tuple(NodeView(name=name_of(node), has_agent=True, free=0) for node in range(nodes))
    )


@contextmanager
def overview(folder: Path, nodes: int, hours: float = HOURS) -> Iterator[str]:
    """URL of an overview whose history has been recorded for more than a day."""
    end = time.time()
    clock = FakeClock(end - hours * 3600)
    recorder = HistoryRecorder(HistoryStore(str(folder / FILE)), clock.time, clock.monotonic)
    while clock.time() < end:
        recorder.record(view(clock.time(), nodes, (end - clock.time()) / 3600), ())
        clock.advance(STEP_SECONDS)
    if hours:
        clock.advance(end - clock.time())
        recorder.record(view(end, nodes, 0.0), ())
    history = HistoryQueries(HistoryReader(recorder))
    world = World(view(end, nodes, 0.0))
    app = create_app(world, page_data=PageData(history=history), history=history)
    web = WebServer(app, socket.create_server(("127.0.0.1", 0)))
    web.start()
    yield "http://{}:{}".format(*web.address)
    web.begin_stop()
    web.wait_stopped()
    recorder.close()


@pytest.fixture(scope="module")
def few(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with overview(tmp_path_factory.mktemp("few"), FEW) as url:
        yield url


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with overview(tmp_path_factory.mktemp("many"), MANY) as url:
        yield url


def opened(tab: Tab, url: str) -> Page:
    tab.page.goto(url)
    expect(tab.page.locator(".heat[data-drawn] canvas")).to_be_visible()
    return tab.page


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_map_is_drawn_and_fits(few: str, many: str, tabs: Callable[..., Tab], size: str, theme: str) -> None:
    for name, url in (("few", few), ("many", many)):
        tab = tabs(viewport=SIZES[size], color_scheme=theme)
        page = opened(tab, url)
        assert page.evaluate("document.documentElement.scrollWidth") <= SIZES[size]["width"]
        box = page.locator(".heat canvas").bounding_box()
        assert box is not None
        assert box["x"] + box["width"] <= SIZES[size]["width"]
        page.locator(".heat").scroll_into_view_if_needed()
        tab.shoot(f"heat-{name}-{size}-{theme}")


def colours(page: Page, row: int, hours: float) -> set[tuple[int, ...]]:
    """Colours that are painted, without the gaps between cells."""
    found = page.locator(".heat canvas").evaluate(COLOURS, [row, FEW, hours])
    pixels = [tuple(found[first : first + 4]) for first in range(0, len(found), 4)]
    return {pixel for pixel in pixels if pixel[3] == 255}


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_unknown_does_not_look_like_zero(few: str, tabs: Callable[..., Tab], theme: str) -> None:
    page = opened(tabs(color_scheme=theme), few)
    zero, low, unknown = colours(page, IDLE, 12), colours(page, 0, 12), colours(page, SILENT, 12)
    assert len(zero) == 1
    assert not zero & low
    assert not zero & unknown  # hatched: the panel shows through


def test_a_cell_says_its_node_time_and_value(few: str, tabs: Callable[..., Tab]) -> None:
    page = opened(tabs(), few)
    canvas, cell = page.locator(".heat canvas"), page.locator("#heat-cell")
    expect(cell).to_contain_text("arrow keys")
    box = canvas.bounding_box()
    assert box is not None
    row = (box["height"] - 20) / FEW
    canvas.hover(position={"x": box["width"] - 4, "y": (IDLE + 0.5) * row})
    expect(cell).to_contain_text(name_of(IDLE))
    expect(cell).to_contain_text("· 0%")
    assert cell.inner_text().count(":") == 2  # from and to
    canvas.hover(position={"x": box["width"] / 2, "y": (SILENT + 0.5) * row})
    expect(cell).to_contain_text("no data")
    page.mouse.move(0, 0)
    expect(cell).to_contain_text("arrow keys")


def test_the_keyboard_reads_every_cell(few: str, tabs: Callable[..., Tab]) -> None:
    page = opened(tabs(locale="zh-CN"), few)
    canvas, cell = page.locator(".heat canvas"), page.locator("#heat-cell")
    canvas.focus()
    page.keyboard.press("ArrowRight")
    expect(cell).to_contain_text(name_of(0))
    for _ in range(SILENT):
        page.keyboard.press("ArrowDown")
    expect(cell).to_contain_text(name_of(SILENT))
    latest = cell.inner_text()
    page.keyboard.press("ArrowLeft")
    expect(cell).not_to_have_text(latest)
    for _ in range(36):
        page.keyboard.press("ArrowLeft")
    expect(cell).to_contain_text("无数据")
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/nodes/{name_of(SILENT)}")


def test_a_group_opens_its_nodes(many: str, tabs: Callable[..., Tab]) -> None:
    page = opened(tabs(viewport=PHONE_SIZE, has_touch=True), many)
    canvas, cell, summary = page.locator(".heat canvas"), page.locator("#heat-cell"), page.locator("#heat-summary")
    expect(summary).to_contain_text("120 nodes, 24 h: mean")
    expect(page.locator(".heat tbody tr")).to_have_count(40)
    box = canvas.bounding_box()
    assert box is not None
    canvas.tap(position={"x": box["width"] - 4, "y": 3})
    expect(cell).to_contain_text(f"{name_of(0)} to {name_of(2)} (3 nodes, mean)")
    page.get_by_role("button", name="Show these 3 nodes").tap()
    expect(page.locator(".heat tbody tr")).to_have_count(3)
    expect(page.locator(".heat tbody tr").first).to_contain_text(name_of(0))
    page.get_by_role("button", name="All nodes").tap()
    expect(page.locator(".heat tbody tr")).to_have_count(40)


def test_a_span_and_a_theme_draw_it_again(few: str, tabs: Callable[..., Tab]) -> None:
    page = opened(tabs(color_scheme="light"), few)
    canvas = page.locator(".heat canvas")
    day = canvas.evaluate("each => each.toDataURL()")
    with page.expect_response(lambda answer: "span=7d" in answer.url):
        page.locator(".heat [data-span='7d']").click()
    page.wait_for_function("before => document.querySelector('.heat canvas').toDataURL() !== before", arg=day)
    week = canvas.evaluate("each => each.toDataURL()")
    page.get_by_role("button", name="Light or dark theme").click()
    page.wait_for_function("before => document.querySelector('.heat canvas').toDataURL() !== before", arg=week)


def test_without_data_the_map_says_what_to_do(tmp_path: Path, tabs: Callable[..., Tab]) -> None:
    with overview(tmp_path, FEW, hours=0.0) as url:
        page = tabs().page
        page.goto(url)
        expect(page.locator("[data-heat-note]")).to_contain_text("gpuwarden doctor")
        expect(page.locator(".heat canvas")).to_be_hidden()
