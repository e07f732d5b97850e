"""Retention and garbage collection of Harbor, as dry runs and for real."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from monitor.cleanup.execute import harbor as registry_harbor
from monitor.cleanup.execute.harbor import GcResult, Harbor, HarborError, RetentionResult
from monitor.cleanup.execute.registry_plan import dry_run_items
from monitor.cleanup.model import RegistryWrite
from monitor.cleanup.policy import RegistryPolicy
from monitor.i18n import LANGUAGES, say
from tests.cleanup.harbor_server import PASSWORD, USER, FakeHarbor
from tests.support import free_port


@pytest.fixture
def password(tmp_path: Path) -> str:
    path = tmp_path / "password"
    path.write_text(PASSWORD + "\n")
    return str(path)


@pytest.fixture
def server() -> Iterator[FakeHarbor]:
    with FakeHarbor() as harbor:
        yield harbor


def policy(url: str, password: str, **more: Any) -> RegistryPolicy:
    return RegistryPolicy(name="harbor", url=url, username=USER, password_file=password, **more)


def client(server: FakeHarbor, password: str, **more: Any) -> Harbor:
    return Harbor(policy(server.url, password, **more), threading.Event())


def test_which_projects_have_rules(server: FakeHarbor, password: str) -> None:
    server.tags = {f"p{number:02d}": (1, 2) for number in range(60)} | {"bare": (0, 0)}
    assert len(client(server, password).retention_rules()) == 60  # more than one page
    assert client(server, password, projects=("p0[12]", "bare")).retention_rules() == (("p01", 2), ("p02", 3))


@pytest.mark.parametrize("dry_run", [True, False])
def test_retention(server: FakeHarbor, password: str, dry_run: bool) -> None:
    found = client(server, password).run_retention("nlp", 1, dry_run=dry_run, timeout=60)
    assert found == RetentionResult("nlp", 1, "Success", total=10, removed=3)
    assert server.writes == [("/retentions/1/executions", {"dry_run": dry_run})]


@pytest.mark.parametrize("dry_run", [True, False])
def test_garbage_collection_never_takes_what_has_no_tag(server: FakeHarbor, password: str, dry_run: bool) -> None:
    found = client(server, password).run_gc(dry_run=dry_run, timeout=60)
    assert found == GcResult("Success", 5_000_000, 7)
    assert server.writes[0][1]["parameters"] == {"dry_run": dry_run, "delete_untagged": False}


def test_a_plan_is_made_by_dry_runs_alone(server: FakeHarbor, password: str) -> None:
    harbor = client(server, password)
    items = dry_run_items(policy(server.url, password), harbor, 5.0)
    assert [(item.name, item.frees_bytes) for item in items] == [("nlp", None), (server.url, 5_000_000)]
    assert [item.act for item in items] == [
        RegistryWrite(registry=server.url, what="retention", dry_run=False, retention=1),
        RegistryWrite(registry=server.url, what="gc", dry_run=False),
    ]
    dry_runs = [body.get("dry_run", body.get("parameters", {}).get("dry_run")) for _, body in server.writes]
    assert dry_runs == [True, True, True]
    for lang in LANGUAGES:
        assert all(say(lang, item.why.key, item.why.values) for item in items)


def test_an_old_harbor_does_not_tell_how_much(server: FakeHarbor, password: str) -> None:
    server.reports_bytes = False
    items = dry_run_items(policy(server.url, password, retention=False), client(server, password), 5.0)
    assert [(item.why.key, item.frees_bytes) for item in items] == [("cleanup.why.gc", None)]
    assert all(say(lang, item.why.key, item.why.values) for lang in LANGUAGES for item in items)


def test_nothing_to_do(server: FakeHarbor, password: str) -> None:
    server.tags, server.garbage, server.blobs = {"base": (0, 4)}, 0, 0
    assert dry_run_items(policy(server.url, password), client(server, password), 5.0) == ()


def test_what_was_done_is_found_again_by_when(server: FakeHarbor, password: str) -> None:
    server.polls = 0
    harbor, started_at = client(server, password), time.time() - 1
    assert harbor.gc_since(started_at) is None
    assert harbor.retention_since("nlp", 1, started_at) is None
    harbor.run_gc(dry_run=True, timeout=60)
    harbor.run_retention("nlp", 1, dry_run=True, timeout=60)
    assert harbor.gc_since(started_at) is None  # a dry run does not count
    assert harbor.retention_since("nlp", 1, started_at) is None
    harbor.run_gc(dry_run=False, timeout=60)
    harbor.run_retention("nlp", 1, dry_run=False, timeout=60)
    assert harbor.gc_since(started_at) == GcResult("Success", 5_000_000, 7)
    assert harbor.retention_since("nlp", 1, started_at) == RetentionResult("nlp", 1, "Success", 10, 3)
    assert harbor.gc_since(time.time() + 60) is None


def test_what_goes_wrong_is_said_without_the_password(
    server: FakeHarbor, password: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = tmp_path / "wrong"
    wrong.write_text("another-secret")
    stopped = threading.Event()
    stopped.set()
    messages = []
    for harbor in (
        Harbor(policy(server.url, str(wrong)), threading.Event()),
        Harbor(policy(f"http://127.0.0.1:{free_port()}", password), threading.Event()),
        Harbor(policy(server.url, password), stopped),
    ):
        with pytest.raises(HarborError) as caught:
            harbor.run_gc(dry_run=True, timeout=60)
        messages.append(str(caught.value))
    server.fails_as = "Error"
    with pytest.raises(HarborError, match="ended with status Error"):
        client(server, password).run_retention("nlp", 1, dry_run=True, timeout=60)
    monkeypatch.setattr(registry_harbor, "FIRST_POLL_SECONDS", 0.01)
    server.polls = 10_000
    with pytest.raises(HarborError, match="not finished within"):
        client(server, password).run_retention("nlp", 1, dry_run=True, timeout=0.1)
    assert [("401" in messages[0]), ("connection refused" in messages[1]), ("daemon is stopping" in messages[2])] == [
        True
    ] * 3
    assert not any(secret in message for message in messages for secret in (PASSWORD, "another-secret"))


def test_a_password_that_cannot_be_read() -> None:
    with pytest.raises(ValueError, match="cannot read the registry password from /nowhere: No such file"):
        Harbor(policy("http://harbor.lab", "/nowhere"), threading.Event())
