"""Images in a real registry whose content is damaged."""

from __future__ import annotations

from pathlib import Path

from tests.lab.registry import compressed, digest


def damage_layer(root: Path, layer: bytes) -> None:
    """Change one byte of a layer in the storage of the registry."""
    name = digest(compressed(layer)).removeprefix("sha256:")
    (stored,) = root.glob(f"**/blobs/sha256/{name[:2]}/{name}/data")
    content = bytearray(stored.read_bytes())
    content[-9] ^= 0xFF  # before the trailer of gzip
    stored.write_bytes(content)
