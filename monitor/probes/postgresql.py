"""PostgreSQL: can it be connected to, read, and written? The only importer of `psycopg`, an optional package."""

from __future__ import annotations

import math
from typing import Any

from monitor.probes.runner import ProbeError, ServiceTarget
from monitor.probes.tcp import network_error

TABLE = "gpuwarden_probe"
READ_ONLY, DISK_FULL, INSUFFICIENT_PRIVILEGE = "25006", "53100", "42501"
UNAVAILABLE = ("57P03", "57P01", "57P02", "53300")  # starting up, shutting down, crashed, too many connections
CANCELED = "57014"
MIN_CONNECT_TIMEOUT_SECONDS = 2  # the client library takes less for none
# What libpq says about the network; it raises one kind of error for all of it.
NETWORK_ERROR_TEXTS = (
    ("refused", ("connection refused", "no such file or directory")),
    ("dns", ("could not translate host name", "failed to resolve host", "name or service not known")),
    ("tls", ("ssl error", "certificate", "does not support ssl")),
    ("timeout", ("timeout expired", "timed out", "no route to host", "unreachable")),
    (
        "refused",
        ("starting up", "shutting down", "too many clients", "remaining connection slots", "closed the connection"),
    ),
)
LAG_QUERY = """
    SELECT greatest(
        coalesce((SELECT max(extract(epoch FROM replay_lag)) FROM pg_stat_replication), 0),
        CASE WHEN pg_is_in_recovery() AND pg_last_wal_receive_lsn() IS DISTINCT FROM pg_last_wal_replay_lsn()
             THEN coalesce(extract(epoch FROM now() - pg_last_xact_replay_timestamp()), 0) ELSE 0 END)
"""


def probe(target: ServiceTarget) -> None:
    """Given a database, return if it can be read and, unless `write` is off, written. Raise ProbeError."""
    try:
        import psycopg  # here: an optional package
    except ImportError:
        raise ProbeError("error", "psycopg is not installed; install gpuwarden[postgresql]") from None
    try:
        with psycopg.connect(target.url, **_options(target)) as connection:
            _use(connection, target)
    except psycopg.Error as error:
        raise _meaning(error) from error
    except OSError as error:
        raise network_error(error) from error


def _options(target: ServiceTarget) -> dict[str, Any]:
    milliseconds = int(target.limit * 1000)
    options: dict[str, Any] = {
        "autocommit": True,
        "connect_timeout": max(MIN_CONNECT_TIMEOUT_SECONDS, math.ceil(target.limit)),
        "application_name": "gpuwarden",
        "options": f"-c statement_timeout={milliseconds} -c lock_timeout={milliseconds}",
    }
    options |= {"password": target.password} if target.password is not None else {}
    options |= {"sslrootcert": target.ca_file, "sslmode": "verify-full"} if target.ca_file is not None else {}
    return options


def _use(connection: Any, target: ServiceTarget) -> None:
    standby, setting = connection.execute(
        "SELECT pg_is_in_recovery(), current_setting('transaction_read_only')"
    ).fetchone()
    if target.write:
        if standby or setting == "on":
            raise ProbeError("read-only", "it is a standby" if standby else "transaction_read_only is on")
        _write(connection)
    if target.max_lag is not None:
        lag = float(connection.execute(LAG_QUERY).fetchone()[0])
        if lag > target.max_lag:
            raise ProbeError("component", f"replication lags {lag:.0f} s behind", component="replication")


def _write(connection: Any) -> None:
    """Write one row of a table of our own: that a database answers does not say that its disk takes anything."""
    if connection.execute(f"SELECT to_regclass('{TABLE}')").fetchone()[0] is None:
        connection.execute(
            f"CREATE TABLE IF NOT EXISTS {TABLE} (id smallint PRIMARY KEY, written_at timestamptz NOT NULL)"
        )
    connection.execute(
        f"INSERT INTO {TABLE} VALUES (1, now()) ON CONFLICT (id) DO UPDATE SET written_at = excluded.written_at"  # noqa: S608  # a constant
    )


def _meaning(error: Any) -> ProbeError:
    """Given what the client library raised, return what it means."""
    code, said = error.sqlstate, " ".join(str(error).split())
    if code in (READ_ONLY, DISK_FULL):
        return ProbeError("read-only", said)
    if code == CANCELED:
        return ProbeError("timeout", said)
    if code in UNAVAILABLE:
        return ProbeError("refused", said)
    if code == INSUFFICIENT_PRIVILEGE:
        return ProbeError("error", f"{said}; let its user create the table {TABLE}, or set write: false")
    lower = said.lower()
    cause = next((cause for cause, words in NETWORK_ERROR_TEXTS if any(word in lower for word in words)), "error")
    return ProbeError(cause, said)
