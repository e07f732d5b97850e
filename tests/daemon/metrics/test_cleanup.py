from __future__ import annotations

from pathlib import Path

from msgspec.structs import replace

from monitor.cleanup.journal import CleanupJournal
from monitor.cleanup.journal_records import ItemState, RunState
from monitor.cleanup.totals import FINAL_STATES
from monitor.daemon.metrics.cleanup import families
from tests.cleanup.support import NOW, item, plan, run
from tests.daemon.metrics.support import lines


def test_the_journal_counts_what_is_done(tmp_path: Path) -> None:
    """A run without any action, a run that frees space, and a policy that has never run."""
    journal = CleanupJournal(str(tmp_path / "cleanup.db"))
    try:
        tried = run("run-0", state=RunState.PLANNED, end="dry-run", started_at=NOW)
        journal.begin(tried, plan(item(1)))
        began = run(started_at=NOW + 1)
        (entry,) = journal.begin(began, plan(item(1)), [item(1)])
        journal.write(began, replace(entry, state=ItemState.INTENDED, intended_at=NOW))
        journal.write(began, replace(entry, state=ItemState.DONE, ended_at=NOW))
        journal.end(replace(began, state=RunState.ENDED, end="done", freed_bytes=7))
        cleaned = journal.counters.totals([began.policy, "never"], journal.last_runs())
    finally:
        journal.close()
    own = began.policy
    found = lines(families(cleaned))
    assert [line for line in found if not line.endswith(" 0.0")] == [
        f'gpuwarden_cleanup_runs_total{{outcome="dry-run",policy="{own}"}} 1.0',
        f'gpuwarden_cleanup_runs_total{{outcome="done",policy="{own}"}} 1.0',
        f'gpuwarden_cleanup_items_total{{outcome="done",policy="{own}"}} 1.0',
        f'gpuwarden_cleanup_freed_bytes_total{{policy="{own}"}} 7.0',
        f'gpuwarden_cleanup_last_run_seconds{{policy="{own}"}} {(NOW + 1) / 1e9}e+09',
    ]
    assert 'gpuwarden_cleanup_freed_bytes_total{policy="never"} 0.0' in found
    assert sum(line.startswith("gpuwarden_cleanup_items_total") for line in found) == 2 * len(FINAL_STATES)


def test_every_end_of_an_item_is_counted_from_the_start() -> None:
    assert set(FINAL_STATES) == set(ItemState) - {ItemState.PLANNED, ItemState.INTENDED}
