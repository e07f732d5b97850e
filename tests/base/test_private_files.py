"""Files that only their owner may read."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from monitor.base.private_files import create_file


def test_a_new_file_is_private_and_complete(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        create_file(str(tmp_path / "new"), b"content")
    finally:
        os.umask(before)
    assert (tmp_path / "new").read_bytes() == b"content"
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["new"]


def test_an_existing_file_or_link_is_kept(tmp_path: Path) -> None:
    (tmp_path / "old").write_text("old")
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    for name in ("old", "link"):
        with pytest.raises(FileExistsError):
            create_file(str(tmp_path / name), b"new")
    assert (tmp_path / "old").read_text() == "old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link", "old"]
