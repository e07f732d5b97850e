from __future__ import annotations

from pathlib import Path

import pytest

from monitor.base.state_size import directory_bytes, shrink_to


class Shelf:
    """A store of records of 10 bytes."""

    def __init__(self, records: int) -> None:
        self.records = records

    def shrink(self) -> bool:
        before, self.records = self.records, self.records // 2
        return before > 0


@pytest.mark.parametrize(
    ("limit", "left"),
    [(200, (10, 10)), (150, (5, 10)), (100, (0, 10)), (60, (0, 5)), (0, (0, 0))],
)
def test_the_least_valuable_records_go_first(limit: int, left: tuple[int, int]) -> None:
    first, second = Shelf(10), Shelf(10)
    size = shrink_to(limit, lambda: 10 * (first.records + second.records), (first, second))
    assert (first.records, second.records) == left
    assert size == 10 * sum(left)


def test_what_cannot_be_removed_remains() -> None:
    assert shrink_to(10, lambda: 99, (Shelf(4),)) == 99


def test_links_are_not_followed(tmp_path: Path) -> None:
    (tmp_path / "state" / "below").mkdir(parents=True)
    (tmp_path / "state" / "below" / "a").write_bytes(b"x" * 100)
    (tmp_path / "large").write_bytes(b"x" * 10_000)
    (tmp_path / "state" / "link").symlink_to(tmp_path / "large")
    assert 100 <= directory_bytes(str(tmp_path / "state")) < 1000
    assert directory_bytes(str(tmp_path / "missing")) == 0
