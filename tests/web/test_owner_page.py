"""The page behind the links of notices, with a real journal: only a form that is sent changes anything, once."""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from monitor.access.audit import AuditLog
from monitor.access.lockout import NAME_POLICY, PEER_POLICY
from monitor.access.owner_links import LinkSigner
from monitor.cleanup.journal import FILE, CleanupJournal
from monitor.cleanup.owner_answers import LINK_VALID_SECONDS
from tests.cleanup.builders import DAY
from tests.cleanup.support import NOW
from tests.cleanup.test_owner_answers import HOUR, ITEM, Desk
from tests.web.cluster import ACCESS, PASSWORD_HASH, Client
from tests.web.cluster import site as serve

LI = {"name": "li", "role": "user", "password_hash": PASSWORD_HASH}
CLOSED = ACCESS | {"anonymous": "none", "users": [*ACCESS["users"], LI]}


class World:
    """A site that needs an account for reading, and its parts."""

    def __init__(self, url: str, desk: Desk, audit: AuditLog) -> None:
        self.url, self.desk, self.audit = url, desk, audit

    def client(self, address: str | None = None) -> Client:
        """A client; with an address, behind a proxy on this machine."""
        return Client(self.url, {"X-Forwarded-For": address} if address else {})

    def keep(self, link: str, seconds: float = 4 * HOUR, reason: str = "", **headers: str) -> int:
        return self.client().form(f"/keep/{link}", {"for": str(int(seconds)), "reason": reason}, **headers).status

    def release(self, link: str, client: Client | None = None, **fields: str) -> int:
        form = {"do": "release", "sure": "yes"} | fields
        return (client or self.client()).form(f"/keep/{link}", form).status

    @property
    def released(self) -> list[str]:
        return [one for one, _ in self.desk.releaser.released]

    @property
    def keeps(self) -> dict[str, Any]:
        return self.desk.journal.keeps.all()

    @property
    def audited(self) -> list[tuple[str, str, str, str]]:
        return [(entry.who, entry.how, entry.what, entry.result) for entry in self.audit.latest(10)]


@contextmanager
def world_in(folder: Path, *, need_login: bool = False) -> Iterator[World]:
    with (
        closing(CleanupJournal(str(folder / FILE))) as journal,
        closing(AuditLog(str(folder / "audit.db"))) as audit,
    ):
        desk = Desk(journal, need_login=need_login)
        with serve(CLOSED, answers=desk.answers, audit=audit) as url:
            yield World(url, desk, audit)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with world_in(tmp_path) as made:
        yield made


def test_opening_a_link_changes_nothing(world: World) -> None:
    link = world.desk.link()
    for opened in (link, world.desk.link(may_release=True)):
        for method in ("GET", "HEAD", "GET"):
            for query in ("", "?do=release&sure=yes", "?for=14400"):
                assert world.client().ask(method, f"/keep/{opened}{query}").status == 200
        assert world.client().ask("PUT", f"/keep/{opened}").status == 405
    assert (world.keeps, world.released, world.audited) == ({}, [], [])
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
        answer = world.client(f"10.0.0.{len(seconds)}").form(f"/keep/{world.desk.link()}", {"for": seconds})
        assert answer.status == 400, seconds
    assert "Choose one of the times" in answer.body
    assert world.keeps == {}


@pytest.mark.parametrize(
    ("until", "hours"),
    [
        (NOW + 5 * HOUR, 5),
        (NOW + 7 * DAY, 7 * 24),
        (NOW - HOUR, None),
        (NOW + 7 * DAY + HOUR, None),
        ("", None),
        ("tomorrow", None),
        ("9999-12-31T23:59", None),
        ("0001-01-01T00:00", None),
        ("٢٠٢٦-01-01T00:00", None),
    ],
)
def test_an_owner_keeps_it_until_a_time(world: World, until: float | str, hours: float | None) -> None:
    text = until if isinstance(until, str) else time.strftime("%Y-%m-%dT%H:%M", time.gmtime(until))
    answer = world.client().form(f"/keep/{world.desk.link()}", {"for": "until", "until": text})
    if hours is None:
        assert (answer.status, world.keeps) == (400, {})
    else:
        assert answer.status == 303
        assert world.keeps[ITEM.id].until == pytest.approx(NOW + hours * HOUR, abs=60)


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


# Releasing


def test_a_private_link_releases_without_an_account(world: World) -> None:
    link = world.desk.link(may_release=True)
    page = world.client().get(f"/keep/{link}")
    for shown in ("<h1>Keep or release nlp/bert?</h1>", "Release now", "The pod is ended"):
        assert shown in page.body
    assert world.release(link) == 303
    assert world.desk.releaser.released == [(ITEM.id, "zhang@127.0.0.1")]
    assert world.audited == [("zhang", "link", "release", "done"), ("zhang", "link", "release", "begun")]
    after = world.client().get(f"/keep/{link}", Accept_Language="zh").body
    assert "<form" not in after
    assert "释放。" in after
    assert world.release(link) == 409
    assert world.released == [ITEM.id]


def test_a_release_has_to_be_confirmed(world: World) -> None:
    link = world.desk.link(may_release=True)
    assert world.release(link, sure="") == 400
    assert world.released == []


def test_a_link_to_a_group_does_not_release(world: World) -> None:
    link = world.desk.link()
    assert "Release now" not in world.client().get(f"/keep/{link}").body
    assert world.release(link) == 403
    assert world.released == []
    assert world.audited == [("zhang", "link", "release", "refused")]
    assert world.keep(link) == 303, "it still keeps"


@pytest.mark.parametrize(("name", "permitted"), [("zhang.wei", True), ("root", True), ("li", False), ("guest", False)])
def test_a_login_with_the_right_role_releases_on_the_same_page(world: World, name: str, permitted: bool) -> None:
    client, link = world.client(), world.desk.link()
    assert f"/login?next={quote(f'/keep/{link}', safe='')}" in client.get(f"/keep/{link}").body
    client.sign_in(name)
    assert ("Release now" in client.get(f"/keep/{link}").body) is permitted
    assert world.release(link, client) == 403, "a form of another site has no token"
    assert world.release(link, client, csrf="x" * 32) == 403
    assert world.released == []
    status = world.release(link, client, csrf=client.csrf())
    assert (status, world.released) == ((303, [ITEM.id]) if permitted else (403, []))
    who, how, what, result = world.audited[0]
    assert (who, how, what, result) == (name, "session", "release", "done" if permitted else "refused")


def test_what_was_not_released_says_why_and_the_link_still_works(world: World) -> None:
    link = world.desk.link(may_release=True)
    world.desk.releaser.busy = True
    answer = world.client().form(f"/keep/{link}", {"do": "release", "sure": "yes"}, Accept_Language="zh")
    assert (answer.status, "未能释放：正在进行。" in answer.body) == (409, True)
    world.desk.releaser.busy = False
    assert world.release(link) == 303
    assert [result for *_, result in world.audited] == ["done", "begun", "refused", "begun"]


def test_a_login_may_be_required_for_every_answer(tmp_path: Path) -> None:
    with world_in(tmp_path, need_login=True) as world:
        link = world.desk.link(may_release=True)
        page = world.client().get(f"/keep/{link}")
        assert (page.status, "nlp/bert" in page.body, "Sign in" in page.body) == (403, False, True)
        assert (world.keep(link), world.release(link)) == (403, 403)
        other, owner = world.client(), world.client()
        other.sign_in("li")
        assert other.form(f"/keep/{link}", {"for": "14400", "csrf": other.csrf()}).status == 403
        owner.sign_in("zhang.wei")
        assert owner.form(f"/keep/{link}", {"for": "14400"}).status == 403, "without the token of a page of this site"
        assert world.keeps == {}
        assert owner.form(f"/keep/{link}", {"for": "14400", "csrf": owner.csrf()}).status == 303
        assert world.audited[0] == ("zhang.wei", "session", "keep", "done")


# Attacks


def test_attempts_without_success_are_limited_by_link_and_by_client(world: World) -> None:
    link, other = world.desk.link(), world.desk.link()
    statuses = [world.keep(link, 1.0) for _ in range(NAME_POLICY.free_attempts + 1)]
    assert statuses == [*[400] * NAME_POLICY.free_attempts, 429]
    assert len(world.audit.latest(100)) == NAME_POLICY.free_attempts
    assert world.keep(other) == 303, "another link of the same owner"
    statuses = [world.keep("x") for _ in range(PEER_POLICY.free_attempts)]
    assert statuses[-1] == 429
    assert world.keep(world.desk.link()) == 429
    assert world.client("10.9.8.7").form(f"/keep/{world.desk.link()}", {"for": "14400"}).status == 303


OURS, FOREIGN = LinkSigner(b"k" * 32), LinkSigner(b"x" * 32)
FORGED = FOREIGN.sign("gpus", ITEM.id, "zhang", NOW + HOUR, may_release=True)
EXPIRED = OURS.sign("gpus", ITEM.id, "zhang", NOW, may_release=True)
OTHER_UID = OURS.sign("gpus", "gpu-pod/u2", "zhang", NOW + HOUR, may_release=True)
OTHER_POLICY = OURS.sign("images", ITEM.id, "zhang", NOW + HOUR, may_release=True)


def wrong_links() -> st.SearchStrategy[str]:
    """Links that were forged, changed, are about another object, or have expired."""
    text = st.text("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_", min_size=1, max_size=300)
    valid = OURS.sign("gpus", ITEM.id, "zhang", NOW + HOUR, may_release=True)
    group = OURS.sign("gpus", ITEM.id, "zhang", NOW + HOUR)
    places = st.integers(0, min(len(valid), len(group)) - 1)
    spliced = places.map(lambda place: group[:place] + valid[place:])
    changed = st.tuples(places, text).map(lambda pair: valid[: pair[0]] + pair[1][0] + valid[pair[0] + 1 :])
    return st.one_of(
        text, st.sampled_from([FORGED, EXPIRED, OTHER_UID, OTHER_POLICY]),
        changed.filter(lambda link: link != valid), spliced.filter(lambda link: link not in (valid, group)),
    )  # fmt: skip


@example(FORGED, {"do": "release", "sure": "yes"})
@example(FORGED, {"do": "keep", "for": "14400"})
@example(EXPIRED, {"do": "release", "sure": "yes"})
@example(OTHER_UID, {"do": "release", "sure": "yes"})
@example(OTHER_POLICY, {"do": "release", "sure": "yes"})
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    link=wrong_links(),
    form=st.fixed_dictionaries(
        {"do": st.sampled_from(["keep", "release", ""])},
        optional={"for": st.sampled_from(["14400", "until"]), "sure": st.just("yes"), "until": st.text(max_size=20)},
    ),
)
def test_no_wrong_link_changes_anything(world: World, link: str, form: dict[str, str]) -> None:
    client = world.client(f"10.{secrets.randbelow(250)}.{secrets.randbelow(250)}.1")
    assert client.get(f"/keep/{link}").status in (200, 404, 410)
    assert client.form(f"/keep/{link}", form).status in (400, 403, 404, 409, 410, 429)
    assert (world.keeps, world.released) == ({}, [])


def test_a_crawler_that_opens_every_link_changes_nothing(world: World) -> None:
    """Also the links of the pages behind them, with every method that programs use to look."""
    seen: set[str] = set()
    waiting = [f"/keep/{world.desk.link(may_release=may_release)}" for may_release in (False, True)]
    while waiting:
        path = waiting.pop()
        seen.add(path)
        for method in ("GET", "HEAD", "OPTIONS"):
            answer = world.client().ask(method, path)
            waiting += [one for one in re.findall(r'(?:href|action|src)="(/[^"]*)"', answer.body) if one not in seen]
    assert len(seen) > 3
    assert (world.keeps, world.released, world.audited) == ({}, [], [])
