"""What owners keep, in every form of the report."""

from __future__ import annotations

import io

from msgspec.structs import replace

from monitor.cleanup.plan.keeps import Keep
from monitor.report.kept import MAX_NAMED_KEEPS, KeptObject, kept_objects, kept_texts
from monitor.report.model import ReportInputs, make_report
from monitor.report.render import as_html, as_json, print_tables
from monitor.report.texts import message_texts

NOW = 1_763_260_000.0  # 2025-11-16 02:26:40 UTC
HOUR = 3600.0
EVIL = "<script>alert(1)</script>"


def keep(number: int, until: float, reason: str = "") -> Keep:
    return Keep(
        item=f"gpu-pod/u{number}", name=f"nlp/bert-{number}", policy="gpus", owner="zhang", at=NOW - HOUR, until=until,
        reason=reason,
    )  # fmt: skip


def test_only_what_is_kept_now_counts_and_the_longest_is_first() -> None:
    found = kept_objects([keep(1, NOW + 1), keep(2, NOW), keep(3, NOW + HOUR, "tests")], NOW)
    assert found == (
        KeptObject(name="nlp/bert-3", owner="zhang", since=NOW - HOUR, until=NOW + HOUR, reason="tests"),
        KeptObject(name="nlp/bert-1", owner="zhang", since=NOW - HOUR, until=NOW + 1),
    )


def test_every_form_of_the_report_says_who_keeps_what() -> None:
    kept = kept_objects([keep(1, NOW + HOUR, EVIL), keep(2, NOW + HOUR)], NOW)
    report = make_report(ReportInputs(kept=kept), NOW - 24 * HOUR, NOW, "user")
    out = io.StringIO()
    print_tables(report, "zh", out, "Asia/Shanghai")
    assert "zhang 要求保留 nlp/bert-2，到 2025-11-16 11:26 CST。" in out.getvalue()
    page = as_html(report, "en", "Asia/Shanghai")
    assert "zhang keeps nlp/bert-2 until 2025-11-16 11:26 CST." in page
    assert (EVIL in page, "&lt;script&gt;" in page) == (False, True)
    assert '"until": 1763263600.0' in as_json(report)
    keys = [text.key for text in message_texts(report)]
    assert keys.count("report.kept") == keys.count("report.kept-because") == 1
    assert '"kept"' not in as_json(replace(report, kept=()))


def test_a_message_names_the_first_few() -> None:
    kept = kept_objects([keep(number, NOW + HOUR) for number in range(MAX_NAMED_KEEPS + 2)], NOW)
    texts = kept_texts(kept, "UTC")
    assert [text.key for text in texts] == ["report.kept"] * MAX_NAMED_KEEPS + ["report.kept.rest"]
    assert texts[-1].values == {"count": 2}
