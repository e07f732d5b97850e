"""Makes small PNG files of screenshots: a palette of 256 colours instead of three bytes for each pixel."""

from __future__ import annotations

import base64
import struct
import zlib
from pathlib import Path

from playwright.sync_api import Page

SIGNATURE = b"\x89PNG\r\n\x1a\n"
PALETTE_TYPE = 3
REDUCE = (Path(__file__).parent / "palette.js").read_text(encoding="utf-8")


def small_png(blank: Page, png: bytes) -> bytes:
    """The same picture with at most 256 colours; the blank page counts them."""
    reduced = blank.evaluate(REDUCE, base64.b64encode(png).decode())
    pixels = base64.b64decode(reduced["pixels"])
    return palette_png(reduced["width"], reduced["height"], reduced["palette"], pixels)


def palette_png(width: int, height: int, palette: list[int], pixels: bytes) -> bytes:
    """A PNG file of indexes into a palette of colours 0xRRGGBB."""
    lines = b"".join(b"\0" + pixels[row * width : (row + 1) * width] for row in range(height))
    return SIGNATURE + b"".join(
        _chunk(kind, content)
        for kind, content in (
            (b"IHDR", struct.pack(">IIBBBBB", width, height, 8, PALETTE_TYPE, 0, 0, 0)),
            (b"PLTE", b"".join(colour.to_bytes(3, "big") for colour in palette)),
            (b"IDAT", zlib.compress(lines, 9)),
            (b"IEND", b""),
        )
    )


def _chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
