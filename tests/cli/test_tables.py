from __future__ import annotations

import io

import msgspec
import pytest
from rich.cells import cell_len

from monitor.cli.tables import print_snapshot, print_tables, print_view
from monitor.facts import DiskFact
from monitor.facts.cluster import ClusterView, Identity, PodView, SourceView
from monitor.facts.findings import Severity
from monitor.i18n import CATALOGS
from monitor.present.alerts import alerts_table, deliveries_table, receiver_tests_table, silences_table
from monitor.present.cluster import tables as view_tables
from monitor.present.findings import LocalizedFinding, findings_table
from monitor.present.node import tables
from tests.present.test_cluster import FULL
from tests.support.snapshots import full_snapshot


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_without_a_terminal_it_is_plain_text_of_120_columns() -> None:
    out = io.StringIO()
    print_snapshot(full_snapshot(), out)
    assert "\x1b" not in out.getvalue()
    assert max(map(len, out.getvalue().splitlines())) <= 120
    assert all(table.title in out.getvalue() for table in tables(full_snapshot()))


def test_nothing_is_cut_off() -> None:
    long = "/mnt/" + "x" * 300
    out = io.StringIO()
    disk = (DiskFact(mount=long, device="d", fstype="ext4"),)
    print_snapshot(msgspec.structs.replace(full_snapshot(), disk=disk), out)
    assert out.getvalue().count("x") >= 300


def test_square_brackets_are_text_and_no_markup() -> None:
    out = io.StringIO()
    disk = (DiskFact(mount="/mnt/[red]a[/red]:smile:", device="d", fstype="ext4"),)
    print_snapshot(msgspec.structs.replace(full_snapshot(), disk=disk), out)
    assert "/mnt/[red]a[/red]:smile:" in out.getvalue()


def test_a_terminal_is_used_in_its_whole_width(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "300")
    out = Terminal()
    print_snapshot(full_snapshot(), out)
    assert any(
        "NVIDIA A100-SXM4-80GB" in line and "throttled: power-cap" in line for line in out.getvalue().splitlines()
    )


def printed(width: int, monkeypatch: pytest.MonkeyPatch, lang: str = "en", view: ClusterView = FULL) -> str:
    """What a terminal of this width shows, without colours."""
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TERM", "dumb")
    out = Terminal()
    print_view(view, out, lang=lang)
    return out.getvalue()


@pytest.mark.parametrize("width", [40, 80, 120])
def test_names_stay_whole_in_a_narrow_terminal(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    long = "a-rather-long-name-of-a-pod-0"
    pod = PodView(uid="1", name=long, namespace="team-a", phase="Pending", identity=Identity(user="zhang.wei"))
    shown = printed(width, monkeypatch, view=msgspec.structs.replace(FULL, pods=(pod,)))
    assert f"team-a/{long}" in shown
    assert all(name in shown for name in ("gpu-01/3", "zhang.wei", "gpu-06"))
    if width >= 80:
        assert max(cell_len(line) for line in shown.splitlines()) <= width


def test_headings_and_states_are_in_the_language_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = printed(120, monkeypatch, "zh")
    assert all(word in shown for word in ("节点", "需要处理的 GPU", "等待调度的 Pod", "占用者", "故障", "禁止调度"))
    assert "GPUs that need attention" not in shown


def test_every_heading_exists_in_both_languages() -> None:
    shown = [*view_tables(FULL), *tables(full_snapshot()), alerts_table((), 0.0), silences_table((), 0.0)]
    shown += [findings_table(None, 0.0), findings_table((), 0.0), deliveries_table(()), receiver_tests_table(())]
    words = {word for table in shown for word in (table.title.partition(" (driver")[0], *table.columns, table.note)}
    words -= {table.note for table in tables(full_snapshot())} | {"", "at (UTC)"}
    assert {word for word in words if f"table.{word}" not in CATALOGS["zh"]} == set()


@pytest.mark.parametrize(("environ", "coloured"), [({}, True), ({"NO_COLOR": "1"}, False)])
def test_severities_are_coloured_on_a_terminal(
    environ: dict[str, str], coloured: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    for name, value in ({"TERM": "xterm-256color", "COLUMNS": "120"} | environ).items():
        monkeypatch.setenv(name, value)
    found = LocalizedFinding(
        key="x", rule="disk-full", severity=Severity.CRITICAL, cause="x", labels={"node": "n1"}, headline="Full."
    )
    terminal, file = Terminal(), io.StringIO()
    for out in (terminal, file):
        print_tables([findings_table((found,), 0.0)], out)
    assert ("\x1b[1;31mcritical" in terminal.getvalue()) is coloured
    assert "\x1b" not in file.getvalue()
    assert "critical" in file.getvalue()


def test_a_failing_api_server_is_one_row(monkeypatch: pytest.MonkeyPatch) -> None:
    why = "unreachable; no response from the API server: refused; without {}, something is missing"
    names = ("pods", "nodes", "events")
    sources = tuple(SourceView(name=name, ok=False, why=why.format(name)) for name in names)
    shown = printed(120, monkeypatch, view=msgspec.structs.replace(FULL, sources=sources))
    assert shown.count("no response from the API server: refused") == 1
    assert "pods, nodes, events" in shown
