"""Probe of PostgreSQL: whether it accepts connections, reads and writes. `psycopg` is an optional package."""

from __future__ import annotations

import math
from typing import Any

from monitor.base.threads import Cancellation, with_deadline
from monitor.probes.runner import ProbeError, ServiceTarget
from monitor.probes.tcp import network_error

TABLE = "gpuwarden_probe"
READ_ONLY, DISK_FULL, INSUFFICIENT_PRIVILEGE = "25006", "53100", "42501"
UNAVAILABLE = ("57P03", "57P01", "57P02", "53300")  # starting up, shutting down, crashed, too many connections
CANCELED = "57014"
GRACE_SECONDS = 1.0  # the timeout of the server comes first, because it says what was too slow
MIN_CONNECT_TIMEOUT_SECONDS = 2  # libpq raises smaller values to 2 s
# libpq reports all network errors as one exception type: its messages tell them apart.
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
    """Read from a database and, unless `write` is off, write to it. Raise ProbeError if that fails."""
    try:
        import psycopg  # here: an optional package
    except ImportError:
        raise ProbeError("error", "psycopg is not installed; install gpuwarden[postgresql]") from None
    try:
        with_deadline(target.limit + GRACE_SECONDS, lambda cancellation: _attempt(psycopg, target, cancellation))
    except psycopg.Error as error:
        raise _probe_error(error) from error
    except OSError as error:
        raise network_error(error) from error


def _attempt(library: Any, target: ServiceTarget, cancellation: Cancellation) -> None:
    with library.connect(target.url, **_options(target)) as connection:
        cancellation.hold(connection)
        _query(connection, target)


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


def _query(connection: Any, target: ServiceTarget) -> None:
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
    """Write one row of our own table: a database that answers may still be unable to write to its disk."""
    if connection.execute(f"SELECT to_regclass('{TABLE}')").fetchone()[0] is None:
        connection.execute(
            f"CREATE TABLE IF NOT EXISTS {TABLE} (id smallint PRIMARY KEY, written_at timestamptz NOT NULL)"
        )
    connection.execute(
        f"INSERT INTO {TABLE} VALUES (1, now()) ON CONFLICT (id) DO UPDATE SET written_at = excluded.written_at"  # noqa: S608  # a constant
    )


def _probe_error(error: Any) -> ProbeError:
    """ProbeError for an exception of the client library."""
    code, message = error.sqlstate, " ".join(str(error).split())
    if code in (READ_ONLY, DISK_FULL):
        return ProbeError("read-only", message)
    if code == CANCELED:
        return ProbeError("timeout", message)
    if code in UNAVAILABLE:
        return ProbeError("refused", message)
    if code == INSUFFICIENT_PRIVILEGE:
        return ProbeError("error", f"{message}; let its user create the table {TABLE}, or set write: false")
    lower = message.lower()
    cause = next((cause for cause, texts in NETWORK_ERROR_TEXTS if any(text in lower for text in texts)), "error")
    return ProbeError(cause, message)
