from __future__ import annotations

import msgspec
import pytest

from monitor.alert.matchers import parse_matcher
from monitor.alert.silences import Silence, active_silences, matching_silence


def silence(silence_id: str, *matchers: str, starts_at: float = 100.0, ends_at: float = 200.0) -> Silence:
    return Silence(
        id=silence_id,
        matchers=tuple(parse_matcher(each) for each in matchers),
        starts_at=starts_at,
        ends_at=ends_at,
        author="zhang",
        comment="new disks",
    )


@pytest.mark.parametrize(
    ("now", "in_force"), [(99.9, False), (100.0, True), (199.9, True), (200.0, False), (1e9, False), (-1.0, False)]
)
def test_a_silence_is_in_force_from_its_start_until_before_its_end(now: float, in_force: bool) -> None:
    given = silence("a", "node=n1")
    assert active_silences([given], now) == ((given,) if in_force else ())
    assert (matching_silence({"node": "n1"}, active_silences([given], now)) is given) is in_force


def test_a_silence_that_was_ended_before_it_began_is_never_in_force() -> None:
    assert active_silences([silence("a", "node=n1", starts_at=100.0, ends_at=50.0)], 75.0) == ()


def test_a_silence_with_an_invalid_pattern_says_why_it_is_never_in_force() -> None:
    stored = msgspec.json.encode(silence("a", "node=n1", "user=~li")).replace(b'"li"', b'"(?=li)"')
    given = msgspec.json.decode(stored, type=Silence)
    assert "invalid perl operator" in (given.disabled or "")
    assert active_silences([given], 150.0) == ()
    assert silence("b", "node=n1").disabled is None


def test_the_first_silence_that_meets_all_labels_is_named() -> None:
    given = [silence("a", "node=n1", "user=li"), silence("b", "node=n1"), silence("c", "node=~n.*")]
    found = matching_silence({"node": "n1", "user": "zhang"}, given)
    assert found is not None
    assert found.id == "b"
    assert matching_silence({"node": "m1"}, given) is None


def test_a_silence_of_everything_must_be_meant() -> None:
    with pytest.raises(ValueError, match="at least one matcher"):
        silence("a")


def test_a_silence_is_kept_as_json() -> None:
    given = silence("a", "node=~n.*", "user!=li")
    assert msgspec.json.decode(msgspec.json.encode(given), type=Silence) == given
