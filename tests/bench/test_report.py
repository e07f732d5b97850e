"""Benchmark reports: one table of all figures, each section once, well-formed plots."""

from __future__ import annotations

from dataclasses import replace
from xml.etree import ElementTree

import pytest

from bench import report
from bench.plot import Bar, Plot, svg
from bench.report import Goal, Report, fails, section, with_section

MET = Goal("a_ratio", 0.5, 1.0, "ours / theirs")
MISSED = Goal("b_speedup", 3.0, None, "theirs / ours", at_least=20)
KNOWN = replace(MISSED, known="it does more")
NAMED = Plot('A <plot> & its "name"', "s", (("one", (Bar("ours", 1.0), Bar("others", 4.0, ours=False))), ("", ())))


@pytest.mark.parametrize("goal", [MET, MISSED])
def test_every_figure_is_in_the_table_of_all(goal: Goal) -> None:
    text = with_section("", "first", section(Report("first", "First", "So.", (MET,))))
    text = with_section(text, "second", section(Report("second", "Second", "So.", (MISSED,))))
    assert text.index(f"| `{goal.key}` |") < text.index("<!-- first -->") < text.index("<!-- second -->")
    assert "**missed**" in text


@pytest.mark.parametrize(("goals", "fail"), [((MET,), False), ((MET, MISSED), True), ((KNOWN, MET), False)])
def test_only_what_is_not_known_to_be_missed_fails(goals: tuple[Goal, ...], fail: bool) -> None:
    assert fails(goals) is fail


def test_what_is_known_to_be_missed_is_still_called_missed_with_the_reason() -> None:
    assert "| **missed**, known: it does more |" in section(Report("first", "First", "So.", (KNOWN,)))


def test_a_section_is_replaced_and_others_stay() -> None:
    text = with_section("", "first", section(Report("first", "First", "Old.", (MET,))))
    text = with_section(text, "second", section(Report("second", "Second", "So.", (MISSED,))))
    text = with_section(text, "first", section(Report("first", "First", "New.", (MET,))))
    assert (text.count("<!-- first -->"), "Old." in text, "New." in text, "## Second" in text) == (1, False, True, True)


def test_the_committed_results_are_as_they_would_be_written() -> None:
    text = report.RESULTS_MD.read_text(encoding="utf-8")
    name, body = "view", text.partition("<!-- view -->\n")[2].partition("<!-- end view -->")[0]
    assert with_section(text, name, body) == text


def test_a_plot_is_well_formed_and_to_scale() -> None:
    root = ElementTree.fromstring(svg(NAMED))  # our own text
    short, long = (float(each.attrib["width"]) for each in root.iter("{http://www.w3.org/2000/svg}rect"))
    assert long == pytest.approx(4 * short, rel=0.01)
    assert root.attrib["aria-label"] == NAMED.title
