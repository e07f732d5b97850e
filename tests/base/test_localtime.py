"""Time zones by name, the time zone of a machine, and times as text."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from monitor.base.localtime import local_instant, local_minute, local_seconds, local_timezone, zone

NOON = 1_763_262_000.0  # 2025-11-16 03:00:00 UTC


def test_the_time_zone_of_this_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TZ", raising=False)
    link = tmp_path / "localtime"
    link.symlink_to("/usr/share/zoneinfo/Asia/Tokyo")
    assert local_timezone(str(link)) == "Asia/Tokyo"
    assert local_timezone(str(tmp_path / "none")) == "UTC"
    monkeypatch.setenv("TZ", "Etc/UTC")
    assert local_timezone(str(link)) == "UTC"
    monkeypatch.setenv("TZ", ":Asia/Shanghai")
    assert local_timezone(str(link)) == "Asia/Shanghai"
    monkeypatch.setenv("TZ", "CST-8")
    assert local_timezone(str(link)) == "Asia/Tokyo"


def test_a_copy_of_a_zone_file_is_recognised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TZ", raising=False)
    zones = tmp_path / "zones"
    (zones / "Asia").mkdir(parents=True)
    (zones / "zone.tab").write_text(
        "# comment\nJP\t+353916+1394441\tAsia/Tokyo\nCN\t+3114+12128\tAsia/Shanghai\tBeijing\n"
    )
    for name in ("Tokyo", "Shanghai"):
        (zones / "Asia" / name).write_bytes(f"rules of {name}".encode())
    copy = tmp_path / "localtime"
    shutil.copy(zones / "Asia" / "Shanghai", copy)
    assert local_timezone(str(copy), str(zones)) == "Asia/Shanghai"
    copy.write_bytes(b"rules of nowhere")
    assert local_timezone(str(copy), str(zones)) == "UTC"
    assert local_timezone(str(copy), str(tmp_path / "none")) == "UTC"


def test_times_as_text() -> None:
    assert local_minute(NOON, "Asia/Shanghai") == "2025-11-16 11:00 CST"
    assert local_instant(NOON, "Europe/Berlin") == "2025-11-16 04:00:00 CET"
    assert local_seconds(NOON, "America/New_York") == "2025-11-15 22:00:00"
    assert local_minute(1e300, "UTC") == "?"  # a broken clock


@pytest.mark.parametrize("name", ["Mars/Olympus", "../etc/passwd", "", "Beijing"])
def test_other_names_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match="is not a time zone: write one such as Asia/Shanghai or UTC"):
        zone(name)
