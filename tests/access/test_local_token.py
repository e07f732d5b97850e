"""The token file of commands: invalid content, and a state directory that cannot be written."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from monitor.access.local_token import MAX_FILE_BYTES, create_local_token, read_local_token, token_path


def test_what_is_written_is_read(tmp_path: Path) -> None:
    assert create_local_token(str(tmp_path / "state")) == read_local_token(str(tmp_path / "state"))


@pytest.mark.parametrize("content", [b"", b"\n", b"two words", b"a\r\nHost: x", b"\xff", b"\x00"])
def test_what_is_no_token_is_not_sent(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "cli.token").write_bytes(content)
    with pytest.raises(ValueError):  # noqa: PT011  # UnicodeDecodeError is one
        read_local_token(str(tmp_path))


def test_a_large_file_is_not_read_to_its_end(tmp_path: Path) -> None:
    (tmp_path / "cli.token").write_text("x" * 10 * MAX_FILE_BYTES)
    assert len(read_local_token(str(tmp_path))) == MAX_FILE_BYTES


def test_a_pipe_in_its_place_does_not_block(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "cli.token")
    with pytest.raises(ValueError, match="not a token"):
        read_local_token(str(tmp_path))


def test_a_state_directory_that_cannot_be_written_is_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "state").write_text("a file, not a directory")
    token = create_local_token(str(tmp_path / "state"))
    assert len(token) >= 43
    assert "need a configured token" in caplog.text
    assert token not in caplog.text
    with pytest.raises(OSError, match="Not a directory"):
        read_local_token(str(tmp_path / "state"))
    assert token_path(str(tmp_path)) == str(tmp_path / "cli.token")
