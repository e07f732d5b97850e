"""The report in a browser: its page, and the mail as a mail client lays it out."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import expect

from monitor.alert.message.compose import compose
from monitor.alert.message.formats import html
from monitor.alert.message.formats.base import fit
from monitor.alert.message.formats.charts import charts_html
from monitor.alert.message.locale import Locale
from monitor.alert.model import Batch, Notification
from monitor.facts.prices import GpuPrices
from monitor.report.buckets import By
from monitor.report.mail import report_notifications, team_notifications
from monitor.report.model import Report
from monitor.web.app import create_app
from monitor.web.context import PageData
from monitor.web.server import WebServer
from tests.report.reports import PRICED, PRICES, REPORT, digest, report
from tests.web.browser.conftest import PHONE_SIZE, Tab
from tests.web.test_app import FakeCluster

SIZES = {"desktop": {"width": 1440, "height": 900}, "phone": PHONE_SIZE}
ZONE = "Asia/Shanghai"
# Width of the painted cells of each bar, by its name.
BARS = """() => Object.fromEntries([...document.querySelectorAll(".chart-bars")[0].rows].map((row) => [
  row.cells[0].textContent, [...row.querySelectorAll("[bgcolor]")].reduce((sum, cell) => sum + cell.offsetWidth, 0),
]))"""


class Reports:
    """The weekly report of a small lab, with prices or without."""

    def __init__(self, prices: GpuPrices | None) -> None:
        self._prices = prices

    def report(self, _seconds: float, by: By) -> Report:
        return report(by, prices=self._prices)


def serve(prices: GpuPrices | None) -> Iterator[str]:
    app = create_app(FakeCluster(), reports=Reports(prices), page_data=PageData(timezone=ZONE))
    web = WebServer(app, socket.create_server(("127.0.0.1", 0)))
    web.start()
    yield "http://{}:{}".format(*web.address)
    web.begin_stop()
    web.wait_stopped()


@pytest.fixture(scope="module")
def reports() -> Iterator[str]:
    yield from serve(None)


@pytest.fixture(scope="module")
def priced() -> Iterator[str]:
    yield from serve(PRICES)


COSTS = {
    "en": ["Cost", "≥16,594 CNY", "Cost of waste", "≥688 CNY", "No price is configured for Tesla T4 (279.5 h)"],
    "zh": ["费用", "≥16,594 CNY", "浪费费用", "≥688 CNY", "以下型号未配置单价：Tesla T4 (279.5 h)"],
}


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("lang", ["en", "zh"])
def test_with_prices_the_page_states_the_cost_and_what_has_none(
    priced: str, tabs: Callable[..., Tab], size: str, lang: str
) -> None:
    tab = tabs(viewport=SIZES[size])
    tab.page.goto(f"{priced}/report?by=queue&lang={lang}")
    for text in COSTS[lang]:
        expect(tab.page.locator("main")).to_contain_text(text)
    dev = tab.page.locator("tr", has=tab.page.get_by_role("link", name="dev", exact=True))
    expect(dev).to_contain_text("–")  # the model of its GPUs has no price, which is not 0
    assert tab.page.evaluate("document.documentElement.scrollWidth") <= SIZES[size]["width"]
    tab.shoot(f"report-cost-{lang}-{size}")


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_without_prices_the_page_has_no_cost(reports: str, tabs: Callable[..., Tab], lang: str) -> None:
    tab = tabs()
    tab.page.goto(f"{reports}/report?by=queue&lang={lang}")
    expect(tab.page.locator("main")).not_to_contain_text(COSTS[lang][0])


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_page_has_charts_that_fit(reports: str, tabs: Callable[..., Tab], size: str, lang: str) -> None:
    tab = tabs(viewport=SIZES[size], color_scheme="dark" if lang == "zh" else "light")
    tab.page.goto(f"{reports}/report?lang={lang}")
    expect(tab.page.locator(".report-chart")).to_have_count(3)
    assert tab.page.evaluate("document.documentElement.scrollWidth") <= SIZES[size]["width"]
    day = tab.page.locator(".chart-hours tr").nth(2).locator("td").first
    assert day.evaluate("each => each.scrollWidth <= each.clientWidth")  # its name does not cover the first hour
    tab.shoot(f"report-{lang}-{size}")


def mail(lang: str, made: Report = REPORT) -> str:
    (notification,) = report_notifications(made, ("mail",), ZONE)
    return rendered(notification, lang)


def rendered(notification: Notification, lang: str) -> str:
    batch = Batch(id="p", receiver="mail", notifications=(notification,), at=notification.at)
    message = compose(batch, Locale(lang, page="https://gpuwarden.lab", timezone=ZONE))
    assert message.charts is not None
    return fit(message, html.MARKUP, 60_000) + "\n" + charts_html(message.charts, lang)


@pytest.mark.parametrize("width", [390, 700])
@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_mail_fits_and_bars_are_as_long_as_their_hours(tabs: Callable[..., Tab], lang: str, width: int) -> None:
    tab = tabs(viewport={"width": width, "height": 1100})
    tab.page.set_content(mail(lang))
    assert tab.page.evaluate("document.documentElement.scrollWidth") <= width
    bars = tab.page.evaluate(BARS)
    assert bars["li"] / bars["zhang"] == pytest.approx(400 / 912.5, abs=0.06)
    assert bars["zhang"] > 80
    assert tab.page.locator(".chart-hours tr").count() == 9  # the heading, and eight days
    tab.shoot(f"mail-{lang}-{width}")


@pytest.mark.parametrize("width", [390, 700])
@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_report_by_queue_with_costs_fits(tabs: Callable[..., Tab], lang: str, width: int) -> None:
    tab = tabs(viewport={"width": width, "height": 1300})
    tab.page.set_content(mail(lang, PRICED))
    assert tab.page.evaluate("document.documentElement.scrollWidth") <= width
    expect(tab.page.locator("body")).to_contain_text("650 CNY")
    expect(tab.page.locator("body")).to_contain_text("Tesla T4 (279.5 h)")
    tab.shoot(f"mail-cost-{lang}-{width}")


@pytest.mark.parametrize("width", [390, 700])
@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_digest_of_a_team_fits_and_has_a_bar_for_each_day(tabs: Callable[..., Tab], lang: str, width: int) -> None:
    tab = tabs(viewport={"width": width, "height": 1400})
    (notification,) = team_notifications(digest(), ("mail",))
    tab.page.set_content(rendered(notification, lang))
    assert tab.page.evaluate("document.documentElement.scrollWidth") <= width
    bars = tab.page.evaluate(BARS)
    assert list(bars) == [f"11-{day:02}" for day in range(9, 17)]
    assert bars["11-10"] > bars["11-16"] > 0
    name = tab.page.locator(".chart-bars").first.locator("tr > td").first
    assert name.evaluate("each => each.offsetHeight") < 30  # one line
    tab.shoot(f"mail-team-{lang}-{width}")
