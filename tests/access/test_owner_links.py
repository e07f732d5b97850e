"""Links to owners: nothing in one can be changed, and none lasts."""

from __future__ import annotations

import base64
import hashlib
import hmac
import stat
from pathlib import Path

import msgspec
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from monitor.access.owner_links import (
    FILE,
    MAX_LINK_CHARS,
    LinkExpiredError,
    LinkInvalidError,
    LinkSigner,
    load_signer,
)

NOW = 1_700_000_000.0
SIGNER = LinkSigner(b"k" * 32)
LINK = SIGNER.sign("gpus", "gpu-pod/u1", "zhang", NOW + 60)
CHARACTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"


@given(st.text(max_size=100), st.text(max_size=200), st.text(max_size=100), st.booleans())
def test_a_link_says_what_it_was_made_for(policy: str, item: str, owner: str, may_release: bool) -> None:
    try:
        text = SIGNER.sign(policy, item, owner, NOW + 60, may_release=may_release)
    except (ValueError, UnicodeEncodeError):
        return
    link = SIGNER.check(text, NOW)
    assert (link.policy, link.item, link.owner, link.expires_at) == (policy, item, owner, NOW + 60)
    assert link.may_release is may_release
    assert len(text) <= MAX_LINK_CHARS


@given(st.integers(0, len(LINK) - 1), st.sampled_from(CHARACTERS))
def test_a_changed_link_is_invalid(place: int, character: str) -> None:
    assume(LINK[place] != character)
    with pytest.raises(LinkInvalidError):
        SIGNER.check(LINK[:place] + character + LINK[place + 1 :], NOW)


@given(st.text(max_size=3000))
def test_any_other_text_is_invalid(text: str) -> None:
    with pytest.raises(LinkInvalidError):
        SIGNER.check(text, NOW)


@given(st.binary(max_size=200))
def test_a_signature_of_another_key_is_invalid(key: bytes) -> None:
    assume(key != b"k" * 32)
    with pytest.raises(LinkInvalidError):
        SIGNER.check(LinkSigner(key).sign("gpus", "gpu-pod/u1", "zhang", NOW + 60), NOW)


def test_a_link_of_the_previous_version_only_keeps() -> None:
    body = msgspec.json.encode(["0123456789abcdef", "gpus", "gpu-pod/u1", "zhang", int(NOW + 60)])
    signature = hmac.digest(b"k" * 32, b"gpuwarden owner link 1" + body, hashlib.sha256)[:16]
    text = base64.urlsafe_b64encode(signature + body).rstrip(b"=").decode()
    assert SIGNER.check(text, NOW).may_release is False


@pytest.mark.parametrize("prefix", ["", " ", "/"])
@pytest.mark.parametrize("end", ["=", "A", "\n", ""])
def test_one_link_has_one_spelling(prefix: str, end: str) -> None:
    text = f"{prefix}{LINK}{end}" if prefix or end else LINK[:-1]
    with pytest.raises(LinkInvalidError):
        SIGNER.check(text, NOW)


def test_a_link_expires() -> None:
    SIGNER.check(LINK, NOW + 59)
    with pytest.raises(LinkExpiredError):
        SIGNER.check(LINK, NOW + 60)


def test_two_links_to_the_same_thing_are_two_links() -> None:
    other = SIGNER.sign("gpus", "gpu-pod/u1", "zhang", NOW + 60)
    assert SIGNER.check(other, NOW).id != SIGNER.check(LINK, NOW).id


def test_a_name_that_is_too_long_gets_no_link() -> None:
    with pytest.raises(ValueError, match="too long"):
        SIGNER.sign("gpus", "x" * MAX_LINK_CHARS, "zhang", NOW)


def test_links_outlive_the_process_and_the_key_is_private(tmp_path: Path) -> None:
    link = load_signer(str(tmp_path / "state")).sign("gpus", "i", "zhang", NOW + 60)
    assert load_signer(str(tmp_path / "state")).check(link, NOW).item == "i"
    key = tmp_path / "state" / FILE
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    assert key.read_bytes() not in base64.urlsafe_b64decode(link + "=" * (-len(link) % 4))


def test_a_damaged_key_or_a_link_in_its_place_is_not_used(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / FILE).write_bytes(b"short")
    damaged = load_signer(str(tmp_path))
    assert "is damaged; delete it" in caplog.text
    link = damaged.sign("gpus", "i", "zhang", NOW + 60)
    assert damaged.check(link, NOW).item == "i"  # works until the end of this process
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_bytes(b"k" * 32)
    (tmp_path / FILE).unlink()
    (tmp_path / FILE).symlink_to(elsewhere)
    with pytest.raises(LinkInvalidError):
        load_signer(str(tmp_path)).check(LINK, NOW)
