"""Images in a real registry whose content is damaged or malformed."""

from __future__ import annotations

import gzip
import hashlib
import json
from pathlib import Path

import requests

LIMIT_SECONDS = 10.0
_MANIFEST = "application/vnd.docker.distribution.manifest.v2+json"
_CONFIG = "application/vnd.docker.container.image.v1+json"
_LAYER = "application/vnd.docker.image.rootfs.diff.tar.gzip"


def push_layer(registry: str, repository: str, layer: bytes) -> str:
    """Push an image with one layer, which is compressed but not checked; return the image's full name."""
    compressed = gzip.compress(layer)
    config = {
        "architecture": "amd64", "os": "linux", "config": {"Cmd": ["/bin/true"]},
        "rootfs": {"type": "layers", "diff_ids": [_digest(layer)]},
    }  # fmt: skip
    blobs = [(_CONFIG, json.dumps(config).encode()), (_LAYER, compressed)]
    for _, blob in blobs:
        _upload(registry, repository, blob)
    described = [{"mediaType": kind, "size": len(blob), "digest": _digest(blob)} for kind, blob in blobs]
    manifest = {"schemaVersion": 2, "mediaType": _MANIFEST, "config": described[0], "layers": described[1:]}
    response = requests.put(
        f"http://{registry}/v2/{repository}/manifests/1", data=json.dumps(manifest),
        headers={"Content-Type": _MANIFEST}, timeout=LIMIT_SECONDS,
    )  # fmt: skip
    response.raise_for_status()
    return f"{registry}/{repository}:1"


def damage_layer(root: Path, layer: bytes) -> None:
    """Change one byte of a layer in the storage of the registry."""
    digest = _digest(gzip.compress(layer)).removeprefix("sha256:")
    (stored,) = root.glob(f"**/blobs/sha256/{digest[:2]}/{digest}/data")
    content = bytearray(stored.read_bytes())
    content[-9] ^= 0xFF  # before the trailer of gzip
    stored.write_bytes(content)


def _upload(registry: str, repository: str, blob: bytes) -> None:
    started = requests.post(f"http://{registry}/v2/{repository}/blobs/uploads/", timeout=LIMIT_SECONDS)
    started.raise_for_status()
    location, digest = started.headers["Location"], _digest(blob)
    separator = "&" if "?" in location else "?"
    done = requests.put(f"{location}{separator}digest={digest}", data=blob, timeout=LIMIT_SECONDS)
    done.raise_for_status()


def _digest(blob: bytes) -> str:
    return f"sha256:{hashlib.sha256(blob).hexdigest()}"
