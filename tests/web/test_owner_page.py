"""The page behind the links of notices, with a real journal: only a form that is sent changes anything, once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from monitor.access.audit import AuditLog
from monitor.cleanup.journal import FILE, CleanupJournal
from monitor.cleanup.owner_answers import LINK_VALID_SECONDS
from tests.cleanup.test_owner_answers import HOUR, ITEM, Desk
from tests.web.cluster import ACCESS, Client
from tests.web.cluster import site as serve

CLOSED = ACCESS | {"anonymous": "none"}


class World:
    """A site that needs an account for reading, and its parts."""

    def __init__(self, url: str, desk: Desk, audit: AuditLog) -> None:
        self.url, self.desk, self.audit = url, desk, audit

    def client(self, **headers: str) -> Client:
        return Client(self.url, headers)

    def keep(self, link: str, seconds: float = 4 * HOUR, reason: str = "", **headers: str) -> int:
        return self.client().form(f"/keep/{link}", {"for": str(int(seconds)), "reason": reason}, **headers).status

    @property
    def keeps(self) -> dict[str, Any]:
        return self.desk.journal.keeps.all()

    @property
    def audited(self) -> list[tuple[str, str, str, str]]:
        return [(entry.who, entry.how, entry.what, entry.result) for entry in self.audit.latest(10)]


@contextmanager
def world_in(folder: Path) -> Iterator[World]:
    with (
        closing(CleanupJournal(str(folder / FILE))) as journal,
        closing(AuditLog(str(folder / "audit.db"))) as audit,
    ):
        desk = Desk(journal)
        with serve(CLOSED, answers=desk.answers, audit=audit) as url:
            yield World(url, desk, audit)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with world_in(tmp_path) as made:
        yield made


def test_opening_a_link_changes_nothing(world: World) -> None:
    link = world.desk.link()
    for method in ("GET", "HEAD", "GET"):
        assert world.client().ask(method, f"/keep/{link}").status == 200
    assert world.client().ask("PUT", f"/keep/{link}").status == 405
    assert (world.keeps, world.audited) == ({}, [])
    page = world.client().get(f"/keep/{link}", Accept_Language="zh")
    for shown in ("<h1>保留 nlp/bert？</h1>", "所属用户：zhang", '<option value="14400">', "保留时长"):
        assert shown in page.body
    assert page.headers["cache-control"] == "no-store"
    assert "<script" not in page.body


def test_it_has_the_language_and_the_theme_of_the_other_pages(world: World) -> None:
    link = world.desk.link()
    chosen = world.client().get(f"/keep/{link}", Cookie="theme=dark; lang=zh").body
    assert '<html lang="zh" data-theme="dark">' in chosen
    assert '<html lang="en">' in world.client().get(f"/keep/{link}").body
    assert 'data-theme="dark"' in world.client().get("/keep/x", Cookie="theme=dark").body


def test_an_owner_keeps_it_without_an_account(world: World) -> None:
    link = world.desk.link()
    assert world.keep(link, reason="<b>debugging</b>") == 303
    keep = world.keeps[ITEM.id]
    assert (keep.owner, keep.until - keep.at, keep.reason) == ("zhang", 4 * HOUR, "<b>debugging</b>")
    page = world.client().get(f"/keep/{link}").body
    assert "zhang keeps it until" in page
    assert "&lt;b&gt;debugging" in page
    assert "<form" not in page
    assert world.audited == [("zhang", "link", "keep", "done")]
    assert link not in str(world.audit.latest(10))


def test_a_link_that_was_used_changes_nothing_more(world: World) -> None:
    link = world.desk.link()
    world.keep(link)
    before = world.keeps
    assert world.keep(link, 24 * HOUR) == 409
    assert world.keeps == before
    world.desk.at += 5 * HOUR  # the keep is over, and the item is due again
    assert "<h1>nlp/bert</h1>" in world.client().get(f"/keep/{link}").body
    assert world.audited[0] == ("zhang", "link", "keep", "refused")


def test_only_the_choices_may_be_chosen(world: World) -> None:
    for seconds in ("1", "-14400", "1e9", "99999999", "nan", "", "١٤٤٠٠"):
        answer = world.client().form(f"/keep/{world.desk.link()}", {"for": seconds})
        assert answer.status == 400, seconds
    assert world.keeps == {}


@pytest.mark.parametrize(("link", "status"), [("x", 404), ("a" * 3000, 404), ("%2e%2e", 404)])
def test_a_wrong_link_says_so_and_changes_nothing(world: World, link: str, status: int) -> None:
    assert world.client().get(f"/keep/{link}").status == status
    assert world.keep(link) == status
    assert (world.keeps, world.audited) == ({}, [])


def test_an_expired_link_says_so(world: World) -> None:
    link = world.desk.link()
    world.desk.at += LINK_VALID_SECONDS
    assert world.client().get(f"/keep/{link}").status == 410
    assert world.keep(link) == 410


def test_what_is_not_due_any_more_is_not_kept(world: World) -> None:
    link = world.desk.link()
    world.desk.planner.items = ()
    page = world.client().get(f"/keep/{link}")
    assert "no longer due" in page.body
    assert "<h1>Nothing to do</h1>" in page.body
    assert "<form" not in page.body
    assert world.keep(link) == 409
    assert world.keeps == {}


def test_a_link_opens_nothing_else(world: World) -> None:
    """The rest of the site still needs an account."""
    link = world.desk.link()
    for path in ("/", "/cleanup", f"/keep/{link}/more", "/keep", "/v1/view"):
        assert world.client().get(path).status in (303, 401, 404), path
    assert world.client().post(f"/keep/{link}", {"for": 14400}).status == 415


def test_someone_who_is_signed_in_can_use_a_link_too(world: World) -> None:
    client = world.client()
    client.sign_in("guest")
    assert client.form(f"/keep/{world.desk.link()}", {"for": "14400"}).status == 303
    assert world.audited[0] == ("zhang", "link", "keep", "done")
