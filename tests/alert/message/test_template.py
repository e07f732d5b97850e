# ruff: noqa: E501  # a case is a row of a table
from __future__ import annotations

import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitor.alert.message.compose import compose
from monitor.alert.message.formats import wecom
from monitor.alert.message.formats.base import fit
from monitor.alert.message.template import check_template, render_template
from monitor.alert.model import Batch
from tests.alert.message.documents import CASES, LOCALES, OWNERS

ENGLISH = LOCALES["en"]
DISK = CASES["disk_full"]

RENDERS = [
    ("the built-in text", DISK, "{{ title }}", "🔴 CRITICAL, new - Disk nearly full: gpu03 /var/lib/docker"),
    ("labels", DISK, "{% for n in notifications %}{% for s in n.subjects %}{{ s.labels.node }}{% endfor %}{% endfor %}", "gpu03"),
    ("a subject", DISK, "{{ notifications[0].subjects[0].name }} since {{ notifications[0].subjects[0].since }}", "Disk nearly full since 2025-10-02 03:05 CST"),
    ("seconds", DISK, "{{ notifications[0].subjects[0].seconds | int }}", "420"),
    ("a link", DISK, "{{ notifications[0].subjects[0].link }}", "https://warden.example/alerts/214f952864dbfc60"),
    ("symptoms", DISK, "{{ notifications[0].symptoms[0].name }} {{ notifications[0].symptoms[0].count }}", "Pod cannot start 2"),
    ("how late", CASES["late"], "{{ late_seconds | int }}", "780"),
    ("of all", DISK, "{{ severity }} {{ resolved }} {{ cluster }} {{ language }} {{ id }}", "critical False prod en p1"),
    ("over", CASES["resolved"], "{{ notifications[0].subjects[0].seconds | int }} {{ notifications[0].reason }}", "1500 resolved"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "given_batch", "template", "expect"), RENDERS, ids=[row[0] for row in RENDERS])
def test_render(name: str, given_batch: Batch, template: str, expect: str) -> None:
    check_template(template)
    assert render_template(template, given_batch, ENGLISH, 4096) == expect


BROKEN = [
    ("a name that does not exist", "{{ nonsense }}", "nonsense"),
    ("a field that does not exist", "{{ notifications[0].nonsense }}", "nonsense"),
    ("syntax", "{% if %}", "Expected an expression"),
    ("out of the sandbox", "{{ title.__class__.__mro__ }}", "SecurityError"),
    ("a division", "{{ 1 / 0 }}", "ZeroDivisionError"),
]


@pytest.mark.parametrize(("name", "template", "why"), BROKEN, ids=[row[0] for row in BROKEN])
def test_a_broken_template_costs_no_alert(name: str, template: str, why: str, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        text = render_template(template, DISK, ENGLISH, 4096, wecom.MARKUP, OWNERS)
    assert text == fit(compose(DISK, ENGLISH), wecom.MARKUP, 4096, OWNERS)
    assert why in caplog.text


def test_an_empty_message_is_not_sent() -> None:
    assert render_template("{% if resolved %}x{% endif %}", DISK, ENGLISH, 4096).startswith("🔴")


SYNTAX = [
    ("{% if %}", "line 1"),
    ("a\nb\n{{ x ", "line 3"),
    ("\n{% for x in y %}", "line 2"),
    ("{{ x | nofilter }}", "line 1"),
    ("{{ " + "(" * 5000 + "x" + ")" * 5000 + " }}", "nested too deeply"),
]


@pytest.mark.parametrize(("template", "expect"), SYNTAX, ids=[row[0][:20] for row in SYNTAX])
def test_check_template_names_the_line(template: str, expect: str) -> None:
    with pytest.raises(ValueError, match=expect):
        check_template(template)


def test_whole_lines_are_kept() -> None:
    assert render_template("first\nsecond\n" + "x" * 100, DISK, ENGLISH, 40) == "first\nsecond\n…"


def test_values_are_escaped_for_where_they_are_read() -> None:
    text = render_template("{{ text }}\n{{ notifications }}", CASES["hostile"], ENGLISH, 100_000, wecom.MARKUP)
    assert "<@all>" not in text
    assert "](http://evil" not in text


@given(st.text(alphabet="{}%ab \n字", max_size=80), st.integers(0, 200))
def test_any_template_gives_a_message_that_fits(template: str, limit: int) -> None:
    assert len(render_template(template, DISK, ENGLISH, limit).encode()) <= limit
