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
from monitor.alert.model import Batch
from monitor.report.buckets import By
from monitor.report.mail import report_notifications
from monitor.report.model import Report
from monitor.web.app import create_app
from monitor.web.context import PageData
from monitor.web.server import WebServer
from tests.report.reports import REPORT, report
from tests.web.browser.conftest import PHONE_SIZE, Tab
from tests.web.test_app import FakeCluster

SIZES = {"desktop": {"width": 1440, "height": 900}, "phone": PHONE_SIZE}
ZONE = "Asia/Shanghai"
# Width of the painted cells of each bar, by its name.
BARS = """() => Object.fromEntries([...document.querySelectorAll(".chart-bars")[0].rows].map((row) => [
  row.cells[0].textContent, [...row.querySelectorAll("[bgcolor]")].reduce((sum, cell) => sum + cell.offsetWidth, 0),
]))"""


class Reports:
    """The weekly report of a small lab."""

    def report(self, _seconds: float, by: By) -> Report:
        return report(by)


@pytest.fixture(scope="module")
def reports() -> Iterator[str]:
    app = create_app(FakeCluster(), reports=Reports(), page_data=PageData(timezone=ZONE))
    web = WebServer(app, socket.create_server(("127.0.0.1", 0)))
    web.start()
    yield "http://{}:{}".format(*web.address)
    web.begin_stop()
    web.wait_stopped()


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


def mail(lang: str) -> str:
    (notification,) = report_notifications(REPORT, ("mail",), ZONE)
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
