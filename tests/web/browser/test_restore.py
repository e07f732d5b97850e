"""Cleanup of datasets on the page: the plan by owner, a run, and a restore from the trash."""

from __future__ import annotations

import re
import socket
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import pytest
from playwright.sync_api import expect

from monitor.access.settings import AccessSettings
from monitor.cleanup.execute.scanner import ScanProgress
from monitor.cleanup.journal_records import CleanupRun, ItemState, JournalEntry, RunState
from monitor.cleanup.model import Item, Risk
from monitor.explain.fits.model import FitsRequest
from monitor.facts.actions import TrashUnit
from monitor.facts.cluster import ClusterView
from monitor.facts.text import Text
from monitor.present.cleanup import ShownItem, ShownPlan, ShownRun
from monitor.queries.cluster import PodExplanation, WantedName
from monitor.queries.fits import FitsAnswer
from monitor.web.app import create_app
from monitor.web.authenticator import Authenticator
from monitor.web.context import PageData
from monitor.web.security import Security
from monitor.web.server import WebServer
from tests.support import wait_until
from tests.web.browser.conftest import Tab

NOW = 1_794_873_600.0
ITEM = Item(
    id="unit", name="/mnt/share/zhang/imagenet-old", why=Text(key="cleanup.why.restore", values={"by": "x"}),
    risk=Risk.MEDIUM, owner="zhang", node="gpu01", frees_bytes=1 << 40,
    act=TrashUnit(root="/mnt/share", path="zhang/imagenet-old", device=1, inode=2, newest=1.0, policy="old-datasets"),
)  # fmt: skip
RUN = CleanupRun(
    id="run-1", policy="old-datasets", kind="datasets", mode="enforce", trigger="cron", started_at=NOW,
    state=RunState.ENDED, node="gpu01", end="done", freed_bytes=0,
)  # fmt: skip
TRASHED = JournalEntry(item=ITEM, place=0, state=ItemState.DONE, outcome="trashed", trash="t-0001")


class EmptyCluster:
    """An empty cluster."""

    def view(self) -> ClusterView:
        return ClusterView(at=NOW)

    def overview(self) -> ClusterView:
        return self.view()

    def findings(self, _lang: str) -> tuple[()]:
        return ()

    def why(self, names: Sequence[WantedName], _lang: str) -> tuple[PodExplanation, ...]:
        raise NotImplementedError(names)

    def fits(self, request: FitsRequest, _lang: str) -> FitsAnswer:
        raise NotImplementedError(request)


@dataclass
class Cleanup:
    """One directory is in the trash, another one is planned."""

    restored: list[str] = field(default_factory=list)
    ran: list[str] = field(default_factory=list)

    def plans(self, _policy: str | None, _lang: str) -> tuple[ShownPlan, ...]:
        item = ShownItem(
            id="next", name="/mnt/share/li/coco-2014", why="Last used 90 d ago.", risk="medium", owner="li",
            frees_bytes=1 << 30, not_before=NOW + 86400,
        )  # fmt: skip
        plan = ShownPlan(
            policy="old-datasets", kind="datasets", mode="enforce", at=NOW, node="gpu01", items=(item,),
            frees_bytes=1 << 30,
        )  # fmt: skip
        return (plan,)

    def policies_on(self, _node: str, _kind: str) -> tuple[str, ...]:
        return ()

    def history(self, _limit: int, _policy: str | None) -> tuple[ShownRun, ...]:
        return (ShownRun(run=RUN, items=(TRASHED,)),)

    def run(self, policy: str, _node: str | None, _by: str) -> tuple[str, ...]:
        self.ran.append(policy)
        return ("gpu01",)

    def restore(self, trash: str, _by: str) -> ShownRun:
        self.restored.append(trash)
        return ShownRun(run=RUN, items=(TRASHED,))

    def release(self, node: str, gpu: str, by: str) -> ShownRun:
        raise NotImplementedError

    def begin_scan(self, policy: str) -> ScanProgress:
        raise NotImplementedError

    def scan(self, policy: str) -> ScanProgress:
        raise NotImplementedError

    def stop_scan(self, policy: str) -> bool:
        raise NotImplementedError


@pytest.fixture
def cleaning() -> Iterator[tuple[str, Cleanup, str]]:
    """Serve a page with cleanup; yield its URL, its backend, and a login link."""
    cleanup, authenticator = Cleanup(), Authenticator(AccessSettings())
    data = PageData(timezone="Asia/Shanghai")
    app = create_app(EmptyCluster(), cleanup=cleanup, security=Security(authenticator), page_data=data)
    server = WebServer(app, socket.create_server(("127.0.0.1", 0)))
    server.start()
    url = "http://{}:{}".format(*server.address)
    yield url, cleanup, url + authenticator.link()
    server.begin_stop()
    server.wait_stopped()


def test_times_are_in_the_zone_of_the_daemon_wherever_the_browser_is(
    cleaning: tuple[str, Cleanup, str], tabs: Callable[..., Tab]
) -> None:
    url, _, _ = cleaning
    page = tabs(timezone_id="America/New_York").page
    page.goto(f"{url}/cleanup")
    # NOW is midnight in UTC; the date is left out on that day.
    expect(page.locator("#runs time").first).to_have_text(re.compile(r"^(2026-11-17 )?08:00:00$"))


def test_what_would_go_is_seen_and_what_went_is_brought_back(
    cleaning: tuple[str, Cleanup, str], tabs: Callable[..., Tab]
) -> None:
    url, cleanup, link = cleaning
    page = tabs().page
    page.goto(link)
    page.get_by_role("button", name="sign out").wait_for()
    page.goto(f"{url}/cleanup")
    expect(page.locator("#plans")).to_contain_text("/mnt/share/li/coco-2014")
    expect(page.locator("#plans").get_by_role("link", name="li", exact=True)).to_be_visible()

    page.get_by_role("button", name="Run now").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("/mnt/share/li/coco-2014")
    dialog.get_by_role("button", name="Confirm").click()
    expect(page.get_by_role("status")).to_have_text("Done.")
    assert cleanup.ran == ["old-datasets"]

    page.locator("#runs summary").click()
    page.get_by_role("button", name="Restore").click()
    expect(dialog).to_contain_text("Restore /mnt/share/zhang/imagenet-old")
    dialog.get_by_role("button", name="Cancel").click()
    assert cleanup.restored == []
    page.get_by_role("button", name="Restore").click()
    dialog.get_by_role("button", name="Confirm").click()
    wait_until(lambda: cleanup.restored == ["t-0001"], 30, "it was asked for")
