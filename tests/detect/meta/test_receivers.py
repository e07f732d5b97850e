from __future__ import annotations

from typing import Any

import pytest

from monitor.detect.meta.receivers import (
    PARKED_FOR_SECONDS,
    RETRYING_AFTER_SECONDS,
    ReceiverStatus,
    receiver_findings,
)
from monitor.facts.findings import Severity
from monitor.i18n import LANGUAGES
from monitor.i18n.notes import sentence

NOW = 1_000_000.0


def status(**given: Any) -> ReceiverStatus:
    return ReceiverStatus(receiver="ops", kind="wecom", error="HTTP 502", **given)


CASES: list[tuple[str, ReceiverStatus, tuple[str, Severity, int] | None]] = [
    ("healthy", status(), None),
    ("failing for a moment", status(failing_since=NOW - RETRYING_AFTER_SECONDS + 1, unsent=3), None),
    ("failing for long", status(failing_since=NOW - RETRYING_AFTER_SECONDS, unsent=3),
     ("retrying", Severity.WARNING, 3)),
    ("rejects", status(parked=2, parked_at=NOW - 10 * PARKED_FOR_SECONDS), ("parked", Severity.CRITICAL, 2)),
    ("rejected, then accepted", status(parked_at=NOW - PARKED_FOR_SECONDS + 1), ("parked", Severity.CRITICAL, 1)),
    ("rejected long ago, then accepted", status(parked_at=NOW - PARKED_FOR_SECONDS), None),
]  # fmt: skip


@pytest.mark.parametrize(("name", "given", "expect"), CASES, ids=[case[0] for case in CASES])
def test_receivers(name: str, given: ReceiverStatus, expect: tuple[str, Severity, int] | None) -> None:
    findings = receiver_findings([given], NOW)
    assert [(each.cause, each.severity, each.headline.values["count"]) for each in findings] == (
        [expect] if expect else []
    )
    for finding in findings:
        assert finding.labels == {"service": "receiver/ops"}
        for lang in LANGUAGES:
            assert all(text.key not in sentence(text, lang) for text in (finding.headline, *finding.advice))
