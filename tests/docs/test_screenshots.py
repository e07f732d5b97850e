"""The pictures of `make screenshots`: there for both languages, small, and shown where readers of the language are."""

from __future__ import annotations

import re
import struct
import zlib
from functools import partial
from pathlib import Path

import pytest

from docs.screenshots.__main__ import DIRECTORY, LOCALES, MAX_BYTES
from docs.screenshots.demo import SHOW_LIMIT_SECONDS, running_demo, wait_for
from docs.screenshots.png import SIGNATURE, palette_png
from docs.screenshots.shots import SHOTS
from tests.docs.pages import CHINESE, ENGLISH, links

PAGES = {"en": ENGLISH, "zh": CHINESE}


def shown(language: str) -> set[Path]:
    """Pictures in the pages of a language."""
    found = {(page.parent / link).resolve() for page in PAGES[language] for link in links(page)}
    return {path for path in found if path.is_relative_to(DIRECTORY)}


@pytest.mark.parametrize("language", LOCALES)
def test_each_picture_is_taken_and_shown(language: str) -> None:
    taken = {DIRECTORY / language / f"{shot.name}.png" for shot in SHOTS}
    assert set(DIRECTORY.glob(f"{language}/*")) == taken
    assert shown(language) == taken


@pytest.mark.parametrize("path", sorted(DIRECTORY.rglob("*.png")), ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_each_picture_is_small(path: Path) -> None:
    content = path.read_bytes()
    assert content.startswith(SIGNATURE)
    assert len(content) <= MAX_BYTES


def test_a_picture_with_a_palette() -> None:
    png = palette_png(2, 1, [0xFF0000, 0x0000FF], b"\x01\x00")
    assert struct.unpack(">II", png[16:24]) == (2, 1)
    assert re.search(rb"PLTE(.{6})", png, re.DOTALL) is not None
    start = png.index(b"IDAT")
    (length,) = struct.unpack(">I", png[start - 4 : start])
    assert zlib.decompress(png[start + 4 : start + 4 + length]) == b"\0\x01\x00"
    assert png.endswith(struct.pack(">I", zlib.crc32(b"IEND")))


@pytest.mark.e2e
def test_the_demo_shows_what_the_pictures_are_about() -> None:
    with running_demo("en") as demo:
        for shot in SHOTS:
            address = wait_for(partial(shot.find, demo), SHOW_LIMIT_SECONDS, shot.name)
            assert address.startswith("http://127.0.0.1:")
