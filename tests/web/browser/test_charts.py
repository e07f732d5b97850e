"""Charts in a browser: drawn with data on desktop and phone, in both themes and languages, without console errors."""

from __future__ import annotations

import random
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import expect

from monitor.explain.fits.model import FitsRequest
from monitor.facts import DiskFact, GpuFact, GpuInventory, HostFact
from monitor.facts.agents import AgentFact
from monitor.facts.cluster import (
    ClusterView,
    GpuState,
    GpuView,
    Holder,
    Identity,
    NodeView,
    PodView,
    QueueView,
    UsageView,
)
from monitor.facts.findings import Severity
from monitor.facts.node import NodeSnapshot
from monitor.history.reader import HistoryReader
from monitor.history.recorder import HistoryRecorder
from monitor.history.store import FILE, HistoryStore
from monitor.present.alerts import LocalizedAlertEvent
from monitor.present.findings import LocalizedFinding
from monitor.queries.cluster import PodExplanation, WantedName
from monitor.queries.fits import FitsAnswer
from monitor.queries.history import HistoryQueries
from monitor.web.app import create_app
from monitor.web.context import PageData
from monitor.web.server import WebServer
from tests.support.clock import FakeClock
from tests.web.browser.conftest import PHONE_SIZE, Tab

HOURS = 30
STEP_SECONDS = 120.0
GIB = 1 << 30
PAGES = {
    "gpu": "/gpus/gpu01/0",
    "node": "/nodes/gpu01",
    "disk": "/nodes/gpu01/disk?mount=/data",
    "job": "/jobs/lab/bert",
    "pod": "/pods/lab/bert-0",
    "user": "/users/zhang",
    "queue": "/queues/vc-nlp",
}
SIZES = {"desktop": {"width": 1440, "height": 900}, "phone": PHONE_SIZE}
DRAWN = """() => [...document.querySelectorAll(".plot canvas")].map((canvas) => {
  const pixels = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
  let coloured = 0;
  for (let at = 0; at < pixels.length; at += 4) {
    const [red, green, blue, alpha] = pixels.slice(at, at + 4);
    if (alpha > 100 && Math.max(red, green, blue) - Math.min(red, green, blue) > 60) coloured += 1;
  }
  return coloured;
})"""


@dataclass(frozen=True)
class World:
    """The cluster now, as the page shows it."""

    seen: ClusterView

    def view(self) -> ClusterView:
        return self.seen

    def overview(self) -> ClusterView:
        return self.seen

    def findings(self, _lang: str) -> tuple[LocalizedFinding, ...] | None:
        return ()

    def why(self, names: Sequence[WantedName], _lang: str) -> tuple[PodExplanation, ...]:
        return tuple(
            PodExplanation(name=name, status="running", cause="running", well=True, lines=("It runs.",))
            for name, _ in names
        )

    def fits(self, request: FitsRequest, _lang: str) -> FitsAnswer:
        raise NotImplementedError(request)


def view(at: float, chance: random.Random) -> ClusterView:
    def load(index: int) -> float:
        return min(1.0, max(0.0, chance.gauss(0.85 - 0.2 * index, 0.05)))

    holder = Holder(pod="bert-0", namespace="lab", pod_uid="u", user="zhang", job="bert", queue="vc-nlp", live=True)
    gpus = tuple(
        GpuView(
            node="gpu01", state=GpuState.BUSY, index=index, holders=(holder,), utilization_ratio=load(index),
            memory_used_bytes=60 * GIB, memory_total_bytes=80 * GIB,
        )
        for index in range(4)
    )  # fmt: skip
    pod = PodView(
        uid="u", name="bert-0", namespace="lab", phase="Running", node="gpu01", requested_gpus=4.0,
        identity=Identity(user="zhang", job="bert", queue="vc-nlp"), usage=UsageView(gpu_utilization_ratio=load(1)),
    )  # fmt: skip
    return ClusterView(
        at=at, gpus=gpus, pods=(pod,), nodes=(NodeView(name="gpu01", has_agent=True, free=4, cards=8),),
        queues=(QueueView(name="vc-nlp", used=4, waiting=chance.randrange(5)),),
        users={"zhang": UsageView(gpus=4, gpu_utilization_ratio=load(1))},
    )  # fmt: skip


def agent(at: float, hours: float, chance: random.Random) -> AgentFact:
    used = (0.5 + 0.01 * hours + chance.uniform(-0.002, 0.002)) * 1000 * GIB
    host = HostFact(
        cpus=8, memory_total_bytes=512 * GIB, memory_available_bytes=200 * GIB,
        cpu_seconds_total={"user": hours * 3600 * 3, "idle": hours * 3600 * 5},
    )  # fmt: skip
    disk = DiskFact(
        mount="/data", device="/dev/sdb", fstype="xfs", roles=("data",), size_bytes=1000 * GIB, used_bytes=int(used),
        available_bytes=int(1000 * GIB - used),
    )  # fmt: skip
    facts = tuple(GpuFact(index=n, power_watts=chance.gauss(300, 9), temperature_celsius=60.0 + n) for n in range(4))
    snapshot = NodeSnapshot(
        node="gpu01", at=at, agent_version="1", host=host, disk=(disk,), gpu=GpuInventory(gpus=facts)
    )
    return AgentFact(target="t", node="gpu01", snapshot=snapshot, received_at=at)


@pytest.fixture(scope="module")
def charts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """URL of a page whose history has been recorded for more than a day."""
    folder: Path = tmp_path_factory.mktemp("history")
    chance, end = random.Random(3), time.time()
    clock = FakeClock(end - HOURS * 3600)
    store = HistoryStore(str(folder / FILE))
    recorder = HistoryRecorder(store, clock.time, clock.monotonic)
    while clock.time() < end:
        facts = agent(clock.time(), (clock.time() - end) / 3600 + HOURS, chance)
        seen = view(clock.time(), chance)
        recorder.record(seen, (facts,))
        clock.advance(60.0 if end - clock.time() < 7200 else STEP_SECONDS)

    def events(labels: object, since: float, limit: int, _lang: str) -> tuple[LocalizedAlertEvent, ...]:
        return tuple(
            LocalizedAlertEvent(
                at=end - ago, what=what, fingerprint="f", rule="gpu-hot", severity=Severity.CRITICAL, labels={},
                headline="GPU 0 on gpu01 is throttled",
            )
            for ago, what in ((900.0, "resolved"), (1800.0, "fired"))
        )[:limit]  # fmt: skip

    queries = HistoryQueries(HistoryReader(recorder), events)
    data = PageData(agents=lambda: (facts,), findings=lambda: (), history=queries)
    web = WebServer(create_app(World(seen), page_data=data, history=queries), socket.create_server(("127.0.0.1", 0)))
    web.start()
    yield "http://{}:{}".format(*web.address)
    web.begin_stop()
    web.wait_stopped()
    recorder.close()


@pytest.mark.parametrize("size", SIZES)
def test_charts_are_drawn_with_data(charts: str, tabs: Callable[..., Tab], size: str) -> None:
    tab = tabs(viewport=SIZES[size], color_scheme="dark" if size == "phone" else "light")
    for name, path in PAGES.items():
        tab.page.goto(charts + path)
        expect(tab.page.locator(".plots[data-drawn] .plot canvas").first).to_be_visible()
        counts = tab.page.evaluate(DRAWN)
        assert counts, name
        assert min(counts) > 50, name
        assert tab.page.evaluate("document.documentElement.scrollWidth") <= SIZES[size]["width"], name
        with tab.page.expect_response(lambda answer: "span=24h" in answer.url):
            tab.page.locator("[data-span='24h']").click()
        expect(tab.page.locator("[data-span='24h']")).to_have_attribute("aria-pressed", "true")
        expect(tab.page.locator(".plots[data-drawn] .plot canvas").first).to_be_visible()
        tab.page.locator(".plots").scroll_into_view_if_needed()
        tab.shoot(f"chart-{name}-{size}")


def test_the_crosshair_shows_the_values_of_its_time_in_chinese(charts: str, tabs: Callable[..., Tab]) -> None:
    page = tabs(locale="zh-CN").page
    page.goto(charts + PAGES["gpu"])
    legend = page.locator(".u-legend").first
    expect(legend).to_contain_text("时间")
    expect(legend).to_contain_text("GPU 利用率")
    latest = legend.locator(".u-value").first.inner_text()
    page.locator(".plot .u-over").first.hover(position={"x": 40, "y": 40})
    expect(legend.locator(".u-value").first).not_to_have_text(latest)
    page.mouse.move(0, 0)
    expect(legend.locator(".u-value").first).to_have_text(latest)


def test_a_theme_that_is_switched_draws_the_charts_again(charts: str, tabs: Callable[..., Tab]) -> None:
    page = tabs(color_scheme="light").page
    page.goto(charts + PAGES["gpu"])
    canvas = page.locator(".plot canvas").first
    expect(canvas).to_be_visible()
    light = canvas.evaluate("each => each.toDataURL()")
    page.get_by_role("button", name="Light or dark theme").click()
    expect(canvas).to_be_visible()
    assert canvas.evaluate("each => each.toDataURL()") != light


def test_without_data_the_page_says_what_to_do(charts: str, tabs: Callable[..., Tab]) -> None:
    page = tabs().page
    page.goto(charts + "/pods/lab/nothing")
    expect(page.locator("[data-plot-note]")).to_contain_text("gpuwarden doctor")
