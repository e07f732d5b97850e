from __future__ import annotations

import io

import msgspec
import pytest

from monitor.cli.tables import print_snapshot
from monitor.facts import DiskFact
from monitor.present.node import tables
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
