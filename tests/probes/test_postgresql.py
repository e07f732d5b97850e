"""Probe of PostgreSQL against a real server: stopped, frozen, read-only, without permissions."""

from __future__ import annotations

import signal
import sys

import pytest

from monitor.probes.postgresql import TABLE, probe
from monitor.probes.runner import ProbeError, ServiceTarget
from tests.support import wait_until
from tests.support.postgresql import Database, database

__all__ = ["database"]  # a fixture is used by its name
SOON = 30


def test_without_the_client_library_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)  # importing it fails, as if it were not installed
    with pytest.raises(ProbeError, match=r"install gpuwarden\[postgresql\]"):
        probe(ServiceTarget(name="db", kind="postgresql", url="postgresql://127.0.0.1/x"))


def test_it_is_well_and_what_was_written_is_one_row(database: Database) -> None:
    assert [database.cause() for _ in range(3)] == [None, None, None]
    assert database.execute(f"SELECT count(*) FROM {TABLE}") == (1,)


def test_it_is_made_read_only(database: Database) -> None:
    database.execute("ALTER SYSTEM SET default_transaction_read_only = on")
    database.execute("SELECT pg_reload_conf()")
    try:
        wait_until(lambda: database.cause() == "read-only", SOON, "it rejects writes")
        assert database.cause(write=False) is None
    finally:
        database.execute("ALTER SYSTEM RESET default_transaction_read_only")
        database.execute("SELECT pg_reload_conf()")
    wait_until(lambda: database.cause() is None, SOON, "it accepts writes again")


def test_a_user_who_may_not_write_is_told_what_to_do(database: Database) -> None:
    database.execute(f"DROP TABLE IF EXISTS {TABLE}")
    database.execute("CREATE ROLE watcher LOGIN")
    database.execute("REVOKE CREATE ON SCHEMA public FROM PUBLIC")
    with pytest.raises(ProbeError, match="or set write: false") as refused:
        probe(database.target("watcher"))
    assert refused.value.cause == "error"
    assert database.cause("watcher", write=False) is None


def test_a_lag_that_is_none(database: Database) -> None:
    assert database.cause(max_lag=1.0) is None


def test_a_user_that_there_is_not(database: Database) -> None:
    with pytest.raises(ProbeError, match="nobody") as refused:
        probe(database.target("nobody"))
    assert refused.value.cause == "error"


def test_a_table_that_is_locked_is_too_slow(database: Database) -> None:
    import psycopg

    assert database.cause() is None
    with psycopg.connect(database.target().url) as other:
        other.execute(f"LOCK TABLE {TABLE}")
        with pytest.raises(ProbeError) as refused:
            probe(database.target(limit=1.0))
    assert refused.value.cause in ("timeout", "error")
    assert "timeout" in str(refused.value)


def test_it_is_stopped_and_started(database: Database) -> None:
    database.stop()
    try:
        assert database.cause() == "refused"
    finally:
        database.start()
    assert database.cause() is None


def test_it_is_frozen(database: Database) -> None:
    database.freeze(signal.SIGSTOP)
    try:
        assert database.cause(limit=2.0) == "timeout"
    finally:
        database.freeze(signal.SIGCONT)


@pytest.mark.parametrize(
    ("url", "cause"),
    [("postgresql://a@no-such-host.invalid/x", "dns"), ("postgresql://a@127.0.0.1:1/x", "refused")],
)
def test_nobody_there(database: Database, url: str, cause: str) -> None:
    with pytest.raises(ProbeError) as refused:
        probe(ServiceTarget(name="db", kind="postgresql", url=url, limit=5.0))
    assert refused.value.cause == cause
