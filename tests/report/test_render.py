"""Rendered reports. After a change: UPDATE_GOLDEN=1, and review the diff."""

from __future__ import annotations

import csv
import io
import os
from html.parser import HTMLParser
from pathlib import Path
from typing import get_args

import msgspec
import pytest

from monitor.report.buckets import By
from monitor.report.model import CleanedItem, Report, ReportInputs, make_report
from monitor.report.render import as_csv, as_html, as_json, escape_formula, print_tables
from monitor.report.texts import message_texts
from tests.report.reports import EVIL, PRICED, REPORT, SINCE, UNTIL, report

FOLDER = Path(__file__).parent / "golden"


def printed(made: Report, lang: str) -> str:
    out = io.StringIO()
    print_tables(made, lang, out)
    return "".join(line.rstrip() + "\n" for line in out.getvalue().splitlines())


def check(name: str, written: str) -> None:
    golden = FOLDER / name
    if os.environ.get("UPDATE_GOLDEN"):  # review the diff before committing
        golden.write_text(written, encoding="utf-8", newline="")
    assert written == golden.read_bytes().decode()


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("by", get_args(By))
def test_table(by: By, lang: str) -> None:
    check(f"table.{by}.{lang}.txt", printed(report(by), lang))


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_table_with_prices(lang: str) -> None:
    check(f"table.cost.{lang}.txt", printed(PRICED, lang))


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_page(lang: str) -> None:
    check(f"page.{lang}.html", as_html(REPORT, lang))


def test_csv_for_spreadsheets() -> None:
    check("rows.csv", as_csv(REPORT))
    check("rows.cost.csv", as_csv(PRICED))


def test_golden_files_are_all_used() -> None:
    tables = {f"table.{by}.{lang}.txt" for by in get_args(By) for lang in ("en", "zh")}
    tables |= {f"table.cost.{lang}.txt" for lang in ("en", "zh")}
    kinds = [f"{kind}.{lang}" for kind in ("message", "message.cost", "message.team") for lang in ("en", "zh")]
    messages = {f"{kind}.{form}" for kind in kinds for form in ("txt", "wecom.txt")}
    mails = {f"{kind}.{lang}.html" for kind in ("mail", "mail.cost", "mail.team") for lang in ("en", "zh")}
    assert {path.name for path in FOLDER.iterdir()} == tables | messages | mails | {
        "page.en.html",
        "page.zh.html",
        "rows.csv",
        "rows.cost.csv",
    }


def test_json_is_the_report() -> None:
    assert msgspec.json.decode(as_json(REPORT), type=Report) == REPORT


def test_no_cell_of_the_csv_is_a_formula() -> None:
    rows = list(csv.reader(io.StringIO(as_csv(REPORT))))
    assert [row[0] for row in rows] == ["user", "zhang", "li", "wang", "chen", "zhao", f"'{EVIL}", ""]
    assert rows[1][1:3] == ["912.5", "710.25"]
    assert {len(row) for row in rows} == {12}


@pytest.mark.parametrize("text", ["=1", "+1", "-1", "@x", "\t=1", "\r=1", "＝1", "＋1", "－1", "＠x"])
def test_formulas(text: str) -> None:
    assert escape_formula(text) == f"'{text}"
    assert escape_formula(f"x{text}") == f"x{text}"


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.seen: set[str] = set()
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.add(tag)
        self.links += [name for name, _ in attrs if name in ("src", "href", "style") or name.startswith("on")]


def test_the_page_runs_nothing_and_loads_nothing() -> None:
    page = as_html(report("node"), "en") + as_html(REPORT, "zh")
    tags = Tags()
    tags.feed(page)
    assert "script" not in tags.seen
    assert tags.links == []
    assert "&lt;script&gt;alert(1)" in page
    assert "http" not in page


def test_control_characters_of_names_do_not_reach_the_terminal() -> None:
    row = msgspec.structs.replace(REPORT.rows[0], name="a\x1b[31m\nb")
    made = msgspec.structs.replace(REPORT, rows=(row,))
    for text in (printed(made, "en"), as_csv(made), as_html(made, "en")):
        assert "\x1b" not in text
        assert "a\\x1b[31m\\nb" in text


@pytest.mark.parametrize(("lang", "empty", "calm"), [
    ("en", "no records", "none"), ("zh", "这段时间没有记录", "没有发生故障"),
])  # fmt: skip
def test_of_nothing(lang: str, empty: str, calm: str) -> None:
    text = printed(make_report(ReportInputs(), SINCE, UNTIL, "user"), lang)
    assert empty in text
    assert calm in text


def test_alerts_that_are_forgotten_are_said_to_be() -> None:
    made = make_report(ReportInputs(events_since=UNTIL - 3600), SINCE, UNTIL, "user")
    assert "Incidents (since 2025-11-16 01:26 UTC; earlier ones are no longer on record)" in printed(made, "en")


@pytest.mark.parametrize(
    ("name", "by", "cleaned", "since", "expect"),
    [
        ("longer than the journal keeps", "user", (), UNTIL - 3600, True),
        ("as long as it keeps", "user", (), SINCE, False),
        ("nothing forgotten", "user", (), 0.0, False),
        ("no cleanup", "user", None, UNTIL - 3600, False),
        ("by queue", "queue", (), UNTIL - 3600, False),
    ],
)
def test_what_was_cleaned_up_and_is_forgotten_is_said_to_be(
    name: str, by: By, cleaned: tuple[CleanedItem, ...] | None, since: float, expect: bool
) -> None:
    made = make_report(ReportInputs(cleaned=cleaned, cleaned_since=since), SINCE, UNTIL, by)
    english = "Cleanups before 2025-11-16 01:26 UTC are no longer on record, so"
    chinese = "2025-11-16 01:26 UTC 之前的清理记录已过期，清理量统计偏低。"
    assert (english in printed(made, "en"), english in as_html(made, "en")) == (expect, expect), name
    assert (chinese in printed(made, "zh")) is expect, name
    assert any(text.key == "report.cleaned-since" for text in message_texts(made)) is (expect or by == "queue"), name
