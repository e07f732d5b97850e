"""Helpers for the daemon's metrics tests: samples of a scrape and promtool's verdict."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterable

from prometheus_client.core import Metric

from monitor.base.metrics import text_of
from tests.support import need


def lines(families: Iterable[Metric | bytes]) -> list[str]:
    """Samples of metric families in text format."""
    return sampled(text_of(families).decode())


def sampled(text: str) -> list[str]:
    """Samples of a scrape in text format."""
    return [line for line in text.splitlines() if not line.startswith("#")]


def assert_promtool_is_content(text: str) -> None:
    """Check a scrape with promtool."""
    need(shutil.which("promtool") is not None, "promtool (Debian package prometheus)")
    check = subprocess.run(
        ["promtool", "check", "metrics"], input=text.encode(), capture_output=True, timeout=300, check=False
    )
    assert (check.returncode, check.stdout.decode(), check.stderr.decode()) == (0, "", "")
