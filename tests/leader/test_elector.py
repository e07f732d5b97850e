"""Two replicas over one simulated cluster: one acts, the other observes, and no action is repeated."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from monitor.access.principal import Principal, Role
from monitor.actions.plan import Cordon
from monitor.actions.service import ActionDeps, ActionService
from monitor.cleanup.journal_records import ItemState
from monitor.cleanup.model import Mode
from monitor.cleanup.policy import ImagePolicy, When
from monitor.daemon.cleaning import CleanupController
from monitor.kube.client import connect
from monitor.kube.node_writes import NodeWrites
from monitor.leader.elector import LEDGER_ANNOTATION, LeaseElector, NotLeaderError, elect_leader
from monitor.leader.lease_api import LeaseApi
from monitor.leader.ledger import (
    MAX_LEDGER_BYTES,
    MAX_MARKS,
    ActionLedger,
    RecordedRun,
    decode_ledger,
    encode_ledger,
    with_mark,
    with_runs,
)
from monitor.sim.node import GIB, SimNode
from monitor.sim.outages import OutageContext
from monitor.sim.simulation import Simulation
from tests.cleanup.running import SOON, cleaning, ended, on_node, runs, simulated
from tests.cleanup.support import Outbox
from tests.support import wait_until
from tests.support.scripted_api import ScriptedApi, status

LEASE_SECONDS = 6.0
ACT: dict[str, Any] = {"mode": Mode.ENFORCE, "announce": 0.0}
NEVER = "0 0 29 2 *"


@pytest.fixture
def story() -> Iterator[Simulation]:
    with simulated() as made:
        yield made


def replica(story: Simulation, folder: Path) -> LeaseElector:
    folder.mkdir(exist_ok=True)
    return elect_leader(connect(str(story.kubeconfig(folder))), "ops", "gpuwarden", LEASE_SECONDS)


@contextlib.contextmanager
def two(story: Simulation, tmp_path: Path) -> Iterator[tuple[LeaseElector, LeaseElector]]:
    """Two replicas; the first one leads."""
    first, second = replica(story, tmp_path / "1"), replica(story, tmp_path / "2")
    first.start()
    wait_until(first.holds, SOON, "the first replica leads")
    second.start()
    wait_until(lambda: second.state().holder is not None, SOON, "the second replica knows the holder")
    try:
        yield first, second
    finally:
        first.stop()
        second.stop()


def old_images(count: int) -> Any:
    def add(node: SimNode, _stage: OutageContext) -> None:
        now = time.time()
        for number in range(count):
            node.add_image(f"harbor.lab/old/i{number}:1", 5 * GIB, now, now - (18 - number) * 86400, shared=0.0)

    return add


def images(story: Simulation) -> set[str]:
    return set(on_node(story, lambda node, _: {name for name in node.images if "/old/" in name}))


def policy(cron: str = NEVER) -> ImagePolicy:
    return ImagePolicy(name="images", when=When(cron=cron), min_age=3600.0, **ACT)


# The ledger


def test_what_is_written_on_a_lease_can_be_read_and_has_an_end() -> None:
    record = with_mark(with_runs(ActionLedger(), "images", ("n1", None), RecordedRun(5.0, "cron")), "digest", 7.0)
    assert decode_ledger(encode_ledger(record)) == record
    assert record.ran("images", None) == RecordedRun(5.0, "cron")
    many = with_runs(
        ActionLedger(), "p", [f"n{number}" for number in range(5000)], RecordedRun(9.0, "cron", is_open=False)
    )
    many = with_runs(many, "p", ("mine",), RecordedRun(1.0, "cron"))
    for number in range(500):
        many = with_mark(many, f"m{number}", float(number))
    kept = decode_ledger(text := encode_ledger(many))
    assert 1000 < len(list(kept.all_runs())) < 5001
    assert kept.ran("p", "mine") is not None, "open runs are not dropped"
    assert (len(kept.marks), min(kept.marks.values())) == (MAX_MARKS, 300.0)
    assert len(text) <= MAX_LEDGER_BYTES


def test_what_an_interrupted_run_deleted_is_still_known_when_it_is_begun_anew() -> None:
    deleting = RecordedRun(5.0, "cron", id="run-1", bytes=7)
    record = with_runs(ActionLedger(), "images", ("n1",), deleting)
    record = with_runs(record, "images", ("n1",), RecordedRun(9.0, "resumed"))
    record = with_runs(record, "images", ("n1",), RecordedRun(9.0, "resumed", id="run-2", bytes=3))
    record = with_runs(
        record, "images", ("n1",), RecordedRun(9.0, "resumed", is_open=False, id="run-2", bytes=3, ended_at=11.0)
    )
    kept = [(ran.id, ran.bytes, ran.is_open, ran.ended_at) for _, _, ran in record.all_runs()]
    assert sorted(kept, key=str) == [("run-1", 7, False, 9.0), ("run-2", 3, False, 11.0)]


@pytest.mark.parametrize("text", [None, "", "{", '{"runs": 5}', '{"runs": {"a": {"b": []}}}'])
def test_what_somebody_else_wrote_there_is_nothing(text: str | None) -> None:
    assert decode_ledger(text) == ActionLedger()


# Two replicas


def test_one_acts_and_the_other_says_who(story: Simulation, tmp_path: Path) -> None:
    with two(story, tmp_path) as (first, second):
        assert (first.term(), second.term()) == (1, None)
        assert second.state().holder == first.state().identity
        with pytest.raises(NotLeaderError, match=str(first.state().identity)) as refused:
            second.check()
        assert "租约 ops/gpuwarden" in refused.value.said("zh")
        with pytest.raises(NotLeaderError):
            second.begin("images", (None,), RecordedRun(1.0, "cron"))
        first.begin("images", ("n1",), RecordedRun(1.0, "cron"), "cron images")
        wait_until(lambda: second.record().marks == {"cron images": 1.0}, SOON, "the other replica reads it")
        first.stop()
        wait_until(second.holds, SOON, "the second takes over")
        assert second.record().ran("images", "n1") == RecordedRun(1.0, "cron")


def test_without_the_right_to_leases_it_says_which(tmp_path: Path) -> None:
    with ScriptedApi([status(403, "Forbidden", "no")]) as api:
        replica = elect_leader(connect(api.kubeconfig(tmp_path)), "ops", "gpuwarden", LEASE_SECONDS)
        replica.start()
        wait_until(lambda: replica.state().trouble, SOON, "the error is reported")
        trouble = replica.state().trouble or ""
        assert "may not get leases in the namespace ops" in trouble
        assert "verbs: [get, create, update]" in trouble
        assert not replica.holds()
        replica.stop()


def test_when_the_api_server_is_gone_its_holder_stops_acting_in_time(story: Simulation, tmp_path: Path) -> None:
    with two(story, tmp_path) as (first, second):
        first._keeper._store = second._keeper._store = unreachable(tmp_path)
        wait_until(lambda: not first.holds(), SOON, "the first replica stops acting")
        assert not second.holds()
        with pytest.raises(NotLeaderError) as refused:
            first.check()
        assert refused.value.holder is None, "the former holder is not reported as the current one"


def unreachable(folder: Path) -> LeaseApi:
    """Client of an API server that has been stopped."""
    with ScriptedApi([]) as api:
        config = api.kubeconfig(folder)
    return LeaseApi(connect(config), "ops", "gpuwarden", 0.2)


def test_only_who_holds_the_lease_cleans_up_and_what_it_began_is_not_begun_again(
    story: Simulation, tmp_path: Path
) -> None:
    on_node(story, old_images(4))
    box = Outbox()
    with (
        two(story, tmp_path) as (first, second),
        cleaning(tmp_path / "1", box, policy(), story=story, leading=first) as one,
        cleaning(tmp_path / "2", box, policy(), story=story, leading=second) as other,
    ):
        with pytest.raises(NotLeaderError):
            other.run("images", None, "me")
        with pytest.raises(NotLeaderError):
            other.restore("trash-1", "me")
        with pytest.raises(NotLeaderError):
            other.release("n", "0", "me")
        (where,) = one.run("images", None, "me")
        run = ended(one, "images")
        assert (run.end, run.freed_bytes >= 4 * 5 * GIB) == ("done", True)
        assert images(story) == set()
        wait_until(lambda: second.record().runs and not _open(second), SOON, "the other replica reads its end")
        ran = second.record().ran("images", where)
        assert ran is not None
        assert (ran.trigger, ran.bytes) == ("asked", run.freed_bytes)
        assert [each.bytes for each in other.own_deletions()] == [run.freed_bytes], "not mistaken for a loss"
        assert sum(each.bytes for each in one.own_deletions()) == run.freed_bytes, "not counted twice"
        first.stop()
        wait_until(second.holds, SOON, "the second takes over")
        other.run("images", None, "me")
        assert ended(other, "images").end == "done"
        assert len(runs(other)) == 1, "an ended run is not resumed"


def _open(elector: LeaseElector) -> list[str]:
    return [policy for policy, _, ran in elector.record().all_runs() if ran.is_open]


def test_a_run_that_loses_the_lease_stops_and_the_next_holder_does_the_rest(story: Simulation, tmp_path: Path) -> None:
    on_node(story, old_images(6))
    with (
        two(story, tmp_path) as (first, second),
        cleaning(tmp_path / "1", Outbox(), policy(), story=story, leading=first) as one,
        cleaning(tmp_path / "2", Outbox(), policy(), story=story, leading=second) as other,
    ):
        _lose_lease_after_two_items(one, first)
        one.run("images", None, "me")
        stopped = ended(one, "images", "lease-lost")
        items = one.history(1, None)[0].items
        assert [item.state for item in items] == [ItemState.DONE] * 2 + [ItemState.LATER] * (len(items) - 2)
        assert {item.outcome for item in items[2:]} == {"lease-lost"}
        assert len(items) >= 6
        assert stopped.state == "ended"
        rest = ended(other, "images", within=SOON)
        assert (rest.trigger, rest.end) == ("resumed", "done")
        again = {item.item.id for item in other.history(1, None)[0].items}
        assert again == {item.item.id for item in items[2:]}, "finished items are not repeated"
        assert images(story) == set()


def _lose_lease_after_two_items(made: CleanupController, leading: LeaseElector) -> None:
    """Let a replica lose its lease after two items."""
    hands = made._runner._deps.plan_runner._executor
    do, count = hands.execute, iter(range(100))

    def counted(*arguments: Any) -> Any:
        if next(count) == 2:
            leading.stop()
        return do(*arguments)

    setattr(hands, "execute", counted)  # noqa: B010  # mypy refuses the plain assignment


def test_a_moment_of_the_crontab_that_another_has_begun_is_not_made_up(story: Simulation, tmp_path: Path) -> None:
    every = "* * * * *"
    now = time.time() // 60 * 60 + 30  # mid-minute: no other cron time falls between the start and the check
    clock = [now]
    with two(story, tmp_path) as (first, second):
        first.begin("images", (), RecordedRun(now + 120, "cron"), "cron images")
        with cleaning(
            tmp_path / "2", Outbox(), policy(every), story=story, leading=second, now=lambda: clock[0]
        ) as other:
            wait_until(lambda: other.journal.metadata("cron images"), SOON, "the start is recorded")
            clock[0] = now + 121  # two cron times have passed, and the first replica has started both
            first.stop()
            wait_until(lambda: second.term() == 1, SOON, "the second takes over")
            wait_until(
                lambda: float(other.journal.metadata("cron images") or 0) > now + 120,
                SOON,
                "it has checked the schedule",
            )
            assert "made-up" not in [run.trigger for run in runs(other)]


def test_a_moment_of_the_crontab_that_nobody_has_begun_is_made_up_once(story: Simulation, tmp_path: Path) -> None:
    now = time.time()
    clock = [now]
    with two(story, tmp_path) as (first, second):
        # Half an hour ahead: a cron time during the test would start a run of its own.
        box, hourly = Outbox(), policy(f"{time.localtime(now + 1800).tm_min} * * * *")
        with cleaning(tmp_path / "2", box, hourly, story=story, leading=second, now=lambda: clock[0]) as other:
            wait_until(lambda: other.journal.metadata("cron images"), SOON, "the start is recorded")
            clock[0] = now + 1921
            first.stop()
            made = ended(other, "images")
            assert made.trigger == "made-up"


class FakeAudit:
    """Collects the results of actions."""

    def __init__(self) -> None:
        self.results: list[str] = []

    def write(self, _person: Principal, _peer: str, _what: str, _on: str, result: str, _detail: str = "") -> None:
        self.results.append(result)


def test_what_people_ask_for_is_refused_where_nobody_acts(story: Simulation, tmp_path: Path) -> None:
    with (
        two(story, tmp_path) as (first, second),
        cleaning(tmp_path / "2", Outbox(), policy(), story=story, leading=second) as other,
    ):
        audit, api = FakeAudit(), connect(str(story.kubeconfig(tmp_path)))
        node = next(iter(other._cluster.view.nodes)).name
        wanted, admin = Cordon(nodes=(node,)), Principal("admin", Role.ADMIN)
        acts = ActionService(other._cluster, ActionDeps(other, nodes=NodeWrites(api)), audit, second)
        with pytest.raises(NotLeaderError):
            acts.perform(wanted, admin, "zh")
        assert audit.results == ["refused"]
        acts = ActionService(other._cluster, ActionDeps(other, nodes=NodeWrites(api)), audit, first)
        assert acts.perform(wanted, admin, "zh").ok


def test_the_annotation_is_as_documented(story: Simulation, tmp_path: Path) -> None:
    with two(story, tmp_path) as (first, _):
        first.begin("images", ("n1",), RecordedRun(5.0, "cron"))
        api = LeaseApi(connect(str(story.kubeconfig(tmp_path))), "ops", "gpuwarden", 2.0)
        found = api.get()
        assert found is not None
        assert found.annotations[LEDGER_ANNOTATION] == '{"runs":{"images":{"n1":[5.0,"cron",true,null,0,null,null]}}}'
