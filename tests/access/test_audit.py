"""The audit log."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from monitor.access.audit import MAX_TEXT_CHARS, AuditEntry, AuditLog
from monitor.access.principal import AuthMethod, Principal, Role
from monitor.cleanup.journal_records import ItemState, JournalEntry
from monitor.present.cleanup import ShownRun
from tests.cleanup.support import item, run
from tests.web import test_alerts_api, test_cleanup_api
from tests.web.cluster import ACCESS, PASSWORD, TOKENS, Client, site

ROOT = Principal("root", Role.ADMIN, method=AuthMethod.SESSION)


@pytest.fixture
def audit(tmp_path: Path) -> Iterator[AuditLog]:
    made = AuditLog(str(tmp_path / "audit.db"), lambda: 100.0, max_entries=5)
    yield made
    made.close()


def test_the_older_half_is_given_up(audit: AuditLog) -> None:
    for number in range(4):
        audit.write(ROOT, "10.0.0.1", "cordon", f"gpu{number}", "done")
    assert audit.shrink()
    assert [entry.on for entry in audit.latest(9)] == ["gpu3", "gpu2"]


def test_what_was_done_is_there_the_last_first_also_after_a_restart(tmp_path: Path) -> None:
    path = str(tmp_path / "state" / "audit.db")
    first = AuditLog(path, lambda: 100.0)
    first.write(ROOT, "10.0.0.1", "cordon", "gpu01", "done", "cordoned")
    first.write(ROOT, "10.0.0.1", "uncordon", "gpu01", "failed")
    first.close()
    again = AuditLog(path, lambda: 200.0)
    found = again.latest(10)
    again.close()
    both: dict[str, Any] = {
        "at": 100.0,
        "who": "root",
        "role": "admin",
        "how": "session",
        "peer": "10.0.0.1",
        "on": "gpu01",
    }
    assert found == (
        AuditEntry(id=2, what="uncordon", result="failed", **both),
        AuditEntry(id=1, what="cordon", result="done", detail="cordoned", **both),
    )


def test_pages_of_it_and_the_oldest_goes(audit: AuditLog) -> None:
    for number in range(9):
        audit.write(ROOT, "", "x", str(number), "done")
    assert [entry.on for entry in audit.latest(2)] == ["8", "7"]
    assert [entry.on for entry in audit.latest(2, before=audit.latest(2)[-1].id)] == ["6", "5"]
    assert [entry.on for entry in audit.latest(100)] == ["8", "7", "6", "5", "4"]


def test_what_it_is_told_is_only_text(audit: AuditLog) -> None:
    audit.write(Principal("ro\not\x1b[31m\ud800", Role.ADMIN), "p", "x", "y" * (MAX_TEXT_CHARS + 1), "done")
    entry = audit.latest(1)[0]
    assert entry.who == "ro ot [31m "
    assert len(entry.on) == MAX_TEXT_CHARS


@pytest.fixture
def url(audit: AuditLog) -> Iterator[str]:
    with site(ACCESS, audit=audit, alerts=test_alerts_api.FakeAlerts(), cleanup=FailingCleanup()) as address:
        yield address


class FailingCleanup(test_cleanup_api.FakeCleanup):
    """Cleanup with a release that fails."""

    def release(self, node: str, gpu: str, by: str) -> ShownRun:
        if gpu == "9":
            raise ValueError("gpu01 has no GPU 9; it has 0, 1")
        state = ItemState.DONE if gpu == "0" else ItemState.FAILED
        entry = JournalEntry(item=item(), place=0, state=state, message="lost" if gpu == "1" else None)
        return ShownRun(run=run(policy="release", by=by), items=(entry,))


CHANGES: list[tuple[str, str, str, Any, tuple[str, ...]]] = [
    (
        "silence", "POST", "/v1/silences", {"matchers": ["node=x"], "duration": "1h", "author": "me"},
        ("silence", 'matchers=["node=x"] duration=1h author=me', "done", ""),
    ),
    ("unsilence", "DELETE", "/v1/silences/s1", None, ("unsilence", "s1", "done", "")),
    (
        "unsilence what is not", "DELETE", "/v1/silences/s9", None,
        ("unsilence", "s9", "refused", "there is no such active silence"),
    ),
    ("a test", "POST", "/v1/alerts/test", {"receiver": "ops"}, ("test-message", "receiver=ops", "done", "")),
    ("a run", "POST", "/v1/cleanup/run", {"policy": "p", "node": "n"}, ("cleanup-run", "policy=p node=n", "done", "")),
    ("a release", "POST", "/v1/cleanup/release", {"node": "n", "gpu": 0}, ("release-gpu", "node=n gpu=0", "done", "")),
    (
        "one that failed", "POST", "/v1/cleanup/release", {"node": "n", "gpu": 1},
        ("release-gpu", "node=n gpu=1", "failed", "lost"),
    ),
    (
        "one of nothing", "POST", "/v1/cleanup/release", {"node": "n", "gpu": 9},
        ("release-gpu", "node=n gpu=9", "refused", "gpu01 has no GPU 9; it has 0, 1"),
    ),
    ("a restore", "POST", "/v1/cleanup/restore/t1", {}, ("restore", "t1", "done", "")),
    ("a scan", "POST", "/v1/cleanup/scan", {"policy": "data"}, ("scan", "policy=data", "done", "")),
    ("its end", "POST", "/v1/cleanup/scan/stop", {"policy": "data"}, ("scan-stop", "policy=data", "done", "")),
]  # fmt: skip


@pytest.mark.parametrize(("name", "method", "path", "payload", "expect"), CHANGES, ids=[row[0] for row in CHANGES])
def test_every_change_by_the_api_is_written_down(
    url: str, audit: AuditLog, name: str, method: str, path: str, payload: Any, expect: tuple[str, ...]
) -> None:
    client = Client(url, {"Authorization": f"Bearer {TOKENS['admin']}"})
    if method == "DELETE":
        client.ask(method, path)
    else:
        client.post(path, payload)
    (entry,) = audit.latest(10)
    assert (entry.what, entry.on, entry.result, entry.detail) == expect
    assert (entry.who, entry.role, entry.how, entry.peer) == ("a admin", "admin", "token", "127.0.0.1")


def test_who_may_not_is_written_down_and_who_is_nobody_is_not(url: str, audit: AuditLog) -> None:
    Client(url).post("/v1/cleanup/run", {"policy": "images"})
    assert audit.latest(10) == ()
    Client(url).post("/v1/cleanup/run", {"policy": "images"}, Authorization=f"Bearer {TOKENS['viewer']}")
    (entry,) = audit.latest(10)
    assert (entry.who, entry.result) == ("a viewer", "refused")


def test_reading_is_not_written_down(url: str, audit: AuditLog) -> None:
    for path in ("/v1/alerts", "/v1/cleanup/plan", "/v1/audit", "/v1/silences"):
        Client(url).get(path, Authorization=f"Bearer {TOKENS['admin']}")
    assert audit.latest(10) == ()


def test_signing_in_is_and_no_secret_is(url: str, audit: AuditLog, tmp_path: Path) -> None:
    client = Client(url)
    client.sign_in("root", "not-the-password")
    client.sign_in("root")
    client.form("/login", {"code": "not-a-code-0123456789"})
    secret = client.csrf()
    client.form("/logout", {"csrf": secret})
    assert [(entry.what, entry.who, entry.result) for entry in reversed(audit.latest(10))] == [
        ("sign-in", "root", "refused"), ("sign-in", "root", "done"), ("sign-in", "link", "refused"),
        ("sign-out", "root", "done"),
    ]  # fmt: skip
    written = b"".join(path.read_bytes() for path in tmp_path.glob("audit.db*"))
    for private in (PASSWORD, "not-the-password", "not-a-code", secret, *client.cookies.values()):
        assert not private or private.encode() not in written


def test_what_is_no_page_of_it_is_refused(url: str) -> None:
    client = Client(url, {"Authorization": f"Bearer {TOKENS['admin']}"})
    for query in ("limit=0", "limit=x", "limit=100000", "before=-1", "limit=%C2%B2", "before=9999999999999999999999"):
        assert client.get(f"/v1/audit?{query}").status == 400
    assert client.get("/v1/audit?limit=1&before=5").status == 200
