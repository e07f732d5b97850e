"""Cleanup over a simulated cluster: images, schedules, announcements, recovery after kill -9."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from apscheduler.triggers.interval import IntervalTrigger

from monitor.cleanup import schedule
from monitor.cleanup.inputs import Planner
from monitor.cleanup.journal import FILE, CleanupJournal
from monitor.cleanup.journal_records import ItemState
from monitor.cleanup.model import Mode
from monitor.cleanup.policy import ImagePolicy, When
from monitor.facts.actions import ActionRequest
from monitor.sim import api as sim_api
from monitor.sim.node import GIB, SimNode
from monitor.sim.outages import OutageContext
from monitor.sim.simulation import Simulation
from tests.cleanup.running import SOON, cleaning, ended, on_node, runs, simulated
from tests.cleanup.support import Outbox, run
from tests.support import wait_until

ACT: dict[str, Any] = {"mode": Mode.ENFORCE, "announce": 0.0}


@pytest.fixture
def story() -> Iterator[Simulation]:
    with simulated() as made:
        yield made


@pytest.fixture
def outbox() -> Outbox:
    return Outbox()


def old_images(count: int, size: int = 20, of: str = "old") -> Any:
    def add(node: SimNode, _stage: OutageContext) -> None:
        now = time.time()
        for number in range(count):
            node.add_image(f"harbor.lab/{of}/i{number}:1", size * GIB, now, now - (18 - number) * 86400, shared=0.0)

    return add


def fill(share: float) -> Any:
    def set_used(node: SimNode, _stage: OutageContext) -> None:
        node.runtime_disk.used = node.runtime_disk.size * share

    return set_used


def share_of(story: Simulation) -> float:
    return float(on_node(story, lambda node, _: node.runtime_disk.used / node.runtime_disk.size))


def names(story: Simulation) -> set[str]:
    return set(on_node(story, lambda node, _: set(node.images)))


def in_use(story: Simulation) -> set[str]:
    return set(on_node(story, lambda node, _: {container.image for container in node.containers.values()}))


def findings(outbox: Outbox, rule: str) -> list[Any]:
    return [sent.subjects[0].finding for sent in outbox.sent if sent.subjects[0].finding.rule == rule]


def test_a_full_disk_is_back_under_its_low_water_mark_by_itself(
    story: Simulation, tmp_path: Path, outbox: Outbox
) -> None:
    on_node(story, old_images(15))
    on_node(story, fill(0.79))
    before, used = names(story), in_use(story)
    policy = ImagePolicy(name="images", when=When(high=0.80, low=0.70), min_age=3600.0, **ACT)
    with cleaning(tmp_path, outbox, policy, story=story) as made:
        time.sleep(0.5)
        assert runs(made) == []  # below the mark
        on_node(story, fill(0.85))
        done = ended(made, "images", "low-water")
        wait_until(lambda: outbox.sent, SOON, "a notification was sent")
        entries = made.history(1, None)[0].items
        deletions = made.own_deletions()
    assert (done.trigger, done.node) == ("high-water", "gpu01")
    assert done.after == pytest.approx(share_of(story), abs=0.01)
    assert 0.68 <= share_of(story) <= 0.70  # at most one image past the mark
    gone = before - names(story)
    assert gone & used == set()
    assert [entry.item.name for entry in entries if entry.state is ItemState.DONE] == sorted(
        gone, key=lambda name: int(name.rpartition("/i")[2].partition(":")[0])
    )  # the least recently used first
    assert done.freed_bytes == len(gone) * 20 * GIB
    assert sum(deletion.bytes for deletion in deletions) == done.freed_bytes
    (report,) = findings(outbox, "cleanup-report")
    assert report.headline.values["done"] == len(gone)
    assert [note.key for note in report.evidence[:2]] == ["cleanup.report.disk", "cleanup.end.low-water"]


def test_a_dry_run_does_nothing_and_says_so_once(story: Simulation, tmp_path: Path, outbox: Outbox) -> None:
    on_node(story, old_images(12))
    on_node(story, fill(0.90))
    before = names(story)
    with cleaning(tmp_path, outbox, ImagePolicy(name="images", min_age=3600.0), story=story) as made:
        ended(made, "images", "dry-run")
        made.run("images", None, "zhang@test")
        wait_until(lambda: len(runs(made)) == 2, SOON, "it ran again")
        wait_until(lambda: outbox.sent, SOON, "a notification was sent")
        shown = made.plans("images", "en")[0]
        assert made.history(9, None)[0].items == ()
    assert names(story) == before
    assert len(shown.items) > 5
    (report,) = findings(outbox, "cleanup-report")
    assert report.headline.key == "cleanup.report.dry-run"


def test_the_first_enforcement_is_announced_ahead_with_its_plan(
    story: Simulation, tmp_path: Path, outbox: Outbox
) -> None:
    on_node(story, old_images(12))
    on_node(story, fill(0.90))
    before = names(story)
    policy = ImagePolicy(name="images", min_age=3600.0, mode=Mode.ENFORCE, announce=2.0)
    with cleaning(tmp_path, outbox, policy, story=story) as made:
        wait_until(lambda: "cleanup-announced" in outbox.rules(), SOON, "it was announced")
        (announced,) = findings(outbox, "cleanup-announced")
        assert announced.headline.values["count"] > 5
        first = ended(made, "images")
        assert first.end in ("waiting", "announced")
        assert names(story) == before
        time.sleep(2.0)
        made.run("images", "gpu01", "zhang@test")
        done = ended(made, "images", "low-water")
        assert (done.trigger, done.by) == ("asked", "zhang@test")
    assert outbox.rules().count("cleanup-announced") == 1
    assert names(story) != before


def test_what_a_template_names_meanwhile_is_kept(
    story: Simulation, tmp_path: Path, outbox: Outbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A CronJob is created after planning; the re-check before the removal finds it."""
    on_node(story, old_images(3))
    planned = Planner.plan

    def plan_then_create(self: Planner, *given: Any) -> Any:
        made = planned(self, *given)
        cron = {
            "metadata": {"name": "nightly", "namespace": "nlp", "uid": "cron-1"},
            "spec": {
                "jobTemplate": {"spec": {"template": {"spec": {"containers": [{"image": "harbor.lab/old/i1:1"}]}}}}
            },
        }
        story.call(lambda stage: stage.cluster.objects.put("cronjobs", cron))
        return made

    monkeypatch.setattr(Planner, "plan", plan_then_create)
    policy = ImagePolicy(name="images", when=When(), min_age=3600.0, **ACT)
    with cleaning(tmp_path, outbox, policy, story=story) as made:
        made.run("images", None, "zhang")
        ended(made, "images", "done")
        became = {
            entry.item.name: (entry.state, entry.outcome, entry.message) for entry in made.history(1, None)[0].items
        }
    assert became["harbor.lab/old/i1:1"] == (ItemState.REFUSED, "needed", "CronJob nlp/nightly")
    assert "harbor.lab/old/i1:1" in names(story)
    assert {"harbor.lab/old/i0:1", "harbor.lab/old/i2:1"} & names(story) == set()
    (report,) = findings(outbox, "cleanup-report")
    assert report.headline.values["left"] == 1


def test_needs_that_cannot_be_read_end_in_no_plan_and_that_is_told(
    story: Simulation, tmp_path: Path, outbox: Outbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sim_api.GROUPS, "/apis/batch/v1", ("jobs",))
    on_node(story, old_images(12))
    before = names(story)
    on_node(story, fill(0.90))
    policy = ImagePolicy(name="images", min_age=3600.0, **ACT)
    with cleaning(tmp_path, outbox, policy, story=story) as made:
        refused = ended(made, "images", "refused")
        wait_until(lambda: outbox.sent, SOON, "a notification was sent")
    assert refused.freed_bytes == 0
    assert names(story) == before
    assert findings(outbox, "cleanup-report")[0].headline.key == "cleanup.refused.needs-unknown"


def test_after_kill_9_what_was_begun_is_asked_for_and_the_run_begun_anew(
    story: Simulation, tmp_path: Path, outbox: Outbox
) -> None:
    """The last process had one image removed, and was killed before it journaled that."""
    on_node(story, old_images(3))
    policy = ImagePolicy(name="images", when=When(), min_age=3600.0, **ACT)
    with cleaning(tmp_path, outbox, policy, story=story) as made:
        planned = made._planner.plan(policy, "gpu01")
        target = made._target("gpu01") or ""
        done = planned.items[0]
        request = _request(done.act, "act-known")
        made._runner._deps.plan_runner._executor._client.submit(target, request)  # type: ignore[attr-defined]  # not in the protocol
    left = names(story)
    assert done.name not in left
    journal = CleanupJournal(str(tmp_path / FILE))
    left_open = run("run-left", policy="images", node="gpu01", started_at=time.time())
    first, second, *_ = journal.begin(left_open, planned, planned.items)
    for entry, request_id in ((first, "act-known"), (second, "act-never-sent")):
        journal.write(left_open, _intended(entry, request_id))
    journal.close()
    with cleaning(tmp_path, outbox, policy, story=story) as made:
        resumed = ended(made, "images", "done")
        shown = {shown_run.run.id: shown_run for shown_run in made.history(9, "images")}
    assert resumed.trigger == "resumed"
    old = shown["run-left"]
    assert (old.run.end, old.run.state) == ("interrupted", "ended")
    became = [(entry.item.name, entry.state, entry.outcome) for entry in old.items if entry.request]
    assert became[0] == (done.name, ItemState.DONE, "removed")
    assert became[1][1:] == (ItemState.FAILED, "lost")
    again = [entry.item.name for entry in shown[resumed.id].items if entry.state is ItemState.DONE]
    assert done.name not in again
    assert second.item.name in again  # never executed, so the next run does it
    assert names(story).isdisjoint({done.name, second.item.name})


def _request(act: Any, request_id: str) -> Any:
    now = time.time()
    return ActionRequest(id=request_id, issued_at=now, expires_at=now + 60, policy="images", plan="x", action=act)


def _intended(entry: Any, request_id: str) -> Any:
    return msgspec.structs.replace(entry, state=ItemState.INTENDED, request=request_id, intended_at=time.time())


def test_a_missed_run_is_made_up_once(story: Simulation, tmp_path: Path, outbox: Outbox) -> None:
    policy = ImagePolicy(name="images", when=When(cron="0 3 * * *"), min_age=3600.0)
    with cleaning(tmp_path, outbox, policy, story=story) as made:
        time.sleep(0.5)
        assert runs(made) == []  # a new policy has missed nothing
    journal = CleanupJournal(str(tmp_path / FILE))
    journal.put_metadata("cron images", repr(time.time() - 3 * 86400))
    journal.close()
    with cleaning(tmp_path, outbox, policy, story=story) as made:
        assert ended(made, "images").trigger == "made-up"
    with cleaning(tmp_path, outbox, policy, story=story) as made:
        time.sleep(0.5)
        assert len(runs(made)) == 1


def test_a_policy_by_crontab_runs(
    story: Simulation, tmp_path: Path, outbox: Outbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("monitor.cleanup.service.cron_trigger", lambda *_: IntervalTrigger(seconds=1))
    policy = ImagePolicy(name="images", when=When(cron="* * * * *"), min_age=3600.0)
    with cleaning(tmp_path, outbox, policy, story=story) as made:
        assert ended(made, "images", "dry-run").trigger == "cron"


def test_a_wrong_key_ends_the_run_with_errors(
    story: Simulation, tmp_path: Path, outbox: Outbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(story._agents, "_act", lambda *_: (401, b'{"error":"no"}'))
    on_node(story, old_images(10))
    before = names(story)
    policy = ImagePolicy(name="images", when=When(), min_age=3600.0, **ACT)
    with cleaning(tmp_path, outbox, policy, story=story) as made:
        made.run("images", None, "zhang")
        ended(made, "images", "errors")
        outcomes = [entry.outcome for entry in made.history(1, None)[0].items if entry.outcome]
        wait_until(lambda: outbox.sent, SOON, "a notification was sent")
    assert set(outcomes) == {"signature"}
    assert len(outcomes) < 10
    assert names(story) == before
    assert findings(outbox, "cleanup-report")[0].severity == "warning"


def test_what_a_full_disk_asked_for_in_vain_is_tried_again_soon_and_told_once(
    story: Simulation, tmp_path: Path, outbox: Outbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schedule, "FIRST_RETRY_SECONDS", 0.5)
    taken, takes = story._agents._act, threading.Event()

    def act(*given: Any) -> Any:
        return taken(*given) if takes.is_set() else (401, b'{"error":"no"}')

    monkeypatch.setattr(story._agents, "_act", act)
    on_node(story, old_images(10))
    on_node(story, fill(0.85))
    policy = ImagePolicy(name="images", when=When(high=0.80, low=0.70), min_age=3600.0, **ACT)
    with cleaning(tmp_path, outbox, policy, story=story) as made:
        wait_until(lambda: [run.end for run in runs(made)] == ["errors"] * 3, SOON, "it was tried three times")
        assert len(findings(outbox, "cleanup-report")) == 1
        takes.set()
        ended(made, "images", "low-water")
        wait_until(lambda: len(findings(outbox, "cleanup-report")) == 2, SOON, "the success was reported")
        assert [run.end for run in runs(made)] == ["low-water", *["errors"] * 3]


def test_a_receiver_that_is_not_known(tmp_path: Path, story: Simulation, outbox: Outbox) -> None:
    policy = ImagePolicy(name="images", receivers=("nobody",))
    with (
        pytest.raises(ValueError, match="there is no receiver 'nobody'; there are wecom"),
        cleaning(tmp_path, outbox, policy, story=story),
    ):
        pass
