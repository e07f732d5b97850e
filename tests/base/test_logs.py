from __future__ import annotations

import io
import logging
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import SecretStr

from monitor.base import logs

AT = 1_794_796_307.123


def line(message: str, *args: object, name: str = "monitor.agent.runner", **fields: object) -> str:
    """Log line of an event at a fixed time, without the constant part."""
    record = logging.LogRecord(name, logging.INFO, "", 1, message, args, None)
    record.created, record.msecs = AT, 123.9
    record.__dict__ |= logs.log_fields(**fields)
    return logs.LogfmtFormatter().format(record)


def test_a_line() -> None:
    assert line("collector %s failed", "gpu", node="gpu-01", duration=1.25) == (
        'ts=2026-11-16T02:31:47.123Z level=info logger=agent.runner msg="collector gpu failed" '
        "node=gpu-01 duration=1.25"
    )


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ("plain", "plain"),
        ("", '""'),
        ("two words", '"two words"'),
        ("a=b", '"a=b"'),
        ('say "hi"', '"say \\"hi\\""'),
        ("back\\slash", '"back\\\\slash"'),
        ("forged\nts=1 level=error", '"forged\\nts=1 level=error"'),
        ("\x1b[31m", '"\\x1b[31m"'),
        ("\u2028", '"\\u2028"'),
        ("\udcff", '"\\udcff"'),
        ("训练", "训练"),
        (True, "true"),
        (3, "3"),
        (0.1 + 0.2, "0.3"),
        (AT, "1794796307.123"),
        (SecretStr("s3cret"), "**********"),
    ],
)
def test_values(value: object, written: str) -> None:
    assert line("m", key=value).endswith(f" msg=m key={written}")


def test_what_is_not_known_is_left_out_and_what_is_fixed_stays() -> None:
    assert line("m", key=None, msg="other", level="error").endswith("level=info logger=agent.runner msg=m")


def test_keys_are_harmless() -> None:
    fields: dict[str, Any] = {"a b\n=": 1}
    assert line("m", **fields).endswith("msg=m a_b__=1")


@settings(deadline=None)  # passes on a busy machine
@given(st.text(), st.text())
def test_an_event_is_one_line_whatever_it_says(message: str, value: str) -> None:
    written = line("%s", message, key=value)
    assert written.isprintable()
    assert len(written.splitlines()) == 1


def test_an_exception_is_on_the_same_line() -> None:
    try:
        raise ValueError("broken\nbadly")
    except ValueError:
        record = logging.LogRecord("x", logging.ERROR, "", 1, "m", (), sys.exc_info())
    written = logs.LogfmtFormatter().format(record)
    assert 'ValueError: broken\\nbadly"' in written
    assert "\n" not in written


@pytest.fixture
def logging_restored() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    root.handlers[:] = []
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


@pytest.mark.usefixtures("logging_restored")
def test_levels_and_nothing_twice() -> None:
    stream = io.StringIO()
    logs.setup("debug")
    logs.setup("warning", stream)
    logging.getLogger("monitor.x").info("quiet")
    logging.getLogger("monitor.x").warning("loud")
    assert [written.split(" ", 1)[1] for written in stream.getvalue().splitlines()] == [
        "level=warning logger=x msg=loud"
    ]


def test_it_costs_the_agent_no_heavy_import() -> None:
    heavy = ("pydantic", "rich", "yaml", "click")
    code = f"import sys; import monitor.base.logs; print([m for m in {heavy} if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_long_values_are_cut_in_the_middle() -> None:
    written = line("%s", "a" * 100_000 + "end", key="b" * 100_000)
    assert len(written) < 5000
    assert "aaaa…aaaa" in written
    assert "end" in written


class Clock:
    now = 0.0


@pytest.fixture
def limited() -> tuple[logging.Logger, io.StringIO, Clock]:
    clock, stream, logger = Clock(), io.StringIO(), logging.Logger("limited")  # noqa: LOG001  # of one test
    handler = logging.StreamHandler(stream)
    handler.setFormatter(logs.LogfmtFormatter())
    handler.addFilter(logs.LogRateFilter(lambda: clock.now))
    logger.addHandler(handler)
    return logger, stream, clock


def test_warnings_of_a_call_site_are_limited_and_counted(limited: tuple[logging.Logger, io.StringIO, Clock]) -> None:
    logger, stream, clock = limited
    for number in range(1000):
        clock.now = 19.9 if number == 999 else 0.0
        logger.warning("number %d", number)
    lines = stream.getvalue().splitlines()
    assert len(lines) == logs.MAX_WARNINGS_PER_INTERVAL + 1
    assert lines[-1].endswith(f'msg="number 999" suppressed={999 - logs.MAX_WARNINGS_PER_INTERVAL}')
    assert "suppressed" not in "".join(lines[:-1])


def test_other_lines_have_a_higher_limit(limited: tuple[logging.Logger, io.StringIO, Clock]) -> None:
    logger, stream, _ = limited
    for _ in range(1000):
        logger.info("usual")
    for _ in range(100):
        logger.error("flood")
    logger.error("of another call site")
    lines = stream.getvalue().splitlines()
    assert len(lines) == logs.MAX_LINES_PER_INTERVAL + logs.MAX_WARNINGS_PER_INTERVAL + 1
    assert "another call site" in lines[-1]
