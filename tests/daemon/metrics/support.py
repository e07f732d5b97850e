"""What the tests of the daemon's metrics look at: the lines of a scrape, and what Prometheus' own tool says of it."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterable

from prometheus_client.core import Metric

from monitor.base.metrics import text_of
from tests.support import need


def lines(families: Iterable[Metric]) -> list[str]:
    """Return the samples of families, as they are written."""
    return sampled(text_of(families).decode())


def sampled(text: str) -> list[str]:
    """Return the samples of a scrape, as they are written."""
    return [line for line in text.splitlines() if not line.startswith("#")]


def assert_promtool_is_content(text: str) -> None:
    """Have a scrape checked by Prometheus itself."""
    need(shutil.which("promtool") is not None, "promtool (Debian package prometheus)")
    check = subprocess.run(
        ["promtool", "check", "metrics"], input=text.encode(), capture_output=True, timeout=60, check=False
    )
    assert (check.returncode, check.stdout.decode(), check.stderr.decode()) == (0, "", "")
