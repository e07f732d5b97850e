"""Container images built from a static busybox, in the archive format that every engine imports."""

from __future__ import annotations

import functools
import gzip
import hashlib
import io
import json
import tarfile
from dataclasses import dataclass
from pathlib import Path

BUSYBOX = Path("/bin/busybox")
APPLETS = ("sh", "sleep", "cat", "dd", "echo")


@dataclass(frozen=True)
class Image:
    """Name, layers and command of an image to build."""

    name: str
    layers: tuple[bytes, ...]
    command: tuple[str, ...] = ("/bin/sleep", "100000")


def layer(files: dict[str, bytes], links: dict[str, str] | None = None) -> bytes:
    """A layer with these files and links, by path."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for path, content in files.items():
            entry = tarfile.TarInfo(path)
            entry.size, entry.mode = len(content), 0o755
            tar.addfile(entry, io.BytesIO(content))
        for path, target in (links or {}).items():
            entry = tarfile.TarInfo(path)
            entry.type, entry.linkname = tarfile.SYMTYPE, target
            tar.addfile(entry)
    return buffer.getvalue()


def busybox_layer() -> bytes:
    """A layer with busybox and its applets."""
    return layer({"bin/busybox": BUSYBOX.read_bytes()}, {f"bin/{applet}": "busybox" for applet in APPLETS})


def archive(images: tuple[Image, ...], *, compressed: bool = False) -> bytes:
    """An archive of several images, with shared layers stored once."""
    pack = functools.partial(gzip.compress, compresslevel=1, mtime=0) if compressed else bytes
    contents: dict[str, bytes] = {}
    manifest = []
    for image in images:
        digests = [hashlib.sha256(one).hexdigest() for one in image.layers]
        contents |= {f"{digest}.tar": pack(one) for digest, one in zip(digests, image.layers, strict=True)}
        config = json.dumps(
            {
                "architecture": "amd64",
                "os": "linux",
                "created": "2024-05-01T00:00:00Z",
                "config": {"Entrypoint": list(image.command), "Labels": {"name": image.name}},
                "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest}" for digest in digests]},
                "history": [{"created_by": "test"} for _ in digests],
            }
        ).encode()
        name = f"{hashlib.sha256(config).hexdigest()}.json"
        contents[name] = config
        manifest.append({"Config": name, "RepoTags": [image.name], "Layers": [f"{digest}.tar" for digest in digests]})
    return layer({**contents, "manifest.json": json.dumps(manifest).encode()})


def tagged(tar: bytes) -> list[str]:
    """Names of the images in an archive."""
    with tarfile.open(fileobj=io.BytesIO(tar)) as opened:
        manifest = opened.extractfile("manifest.json")
        assert manifest is not None
        return [name for image in json.load(manifest) for name in image["RepoTags"]]
