"""Images in a registry without TLS, pushed without an engine."""

from __future__ import annotations

import gzip
import hashlib
import json

import requests

LIMIT_SECONDS = 60.0
_MANIFEST = "application/vnd.docker.distribution.manifest.v2+json"
_CONFIG = "application/vnd.docker.container.image.v1+json"
_LAYER = "application/vnd.docker.image.rootfs.diff.tar.gzip"


def push_layer(registry: str, name: str, layer: bytes) -> str:
    """Push an image with one layer, which is compressed but not checked; return the image's full name."""
    repository, _, tag = name.partition(":")
    tag = tag or "latest"
    config = {
        "architecture": "amd64", "os": "linux", "config": {"Cmd": ["/bin/true"]},
        "rootfs": {"type": "layers", "diff_ids": [digest(layer)]},
    }  # fmt: skip
    blobs = [(_CONFIG, json.dumps(config).encode()), (_LAYER, compressed(layer))]
    for _, blob in blobs:
        _upload(registry, repository, blob)
    described = [{"mediaType": kind, "size": len(blob), "digest": digest(blob)} for kind, blob in blobs]
    manifest = {"schemaVersion": 2, "mediaType": _MANIFEST, "config": described[0], "layers": described[1:]}
    response = requests.put(
        f"http://{registry}/v2/{repository}/manifests/{tag}", data=json.dumps(manifest),
        headers={"Content-Type": _MANIFEST}, timeout=LIMIT_SECONDS,
    )  # fmt: skip
    response.raise_for_status()
    return f"{registry}/{repository}:{tag}"


def compressed(layer: bytes) -> bytes:
    """A layer as registries store it."""
    return gzip.compress(layer, compresslevel=1, mtime=0)


def digest(blob: bytes) -> str:
    """Name of a blob in a registry."""
    return f"sha256:{hashlib.sha256(blob).hexdigest()}"


def _upload(registry: str, repository: str, blob: bytes) -> None:
    started = requests.post(f"http://{registry}/v2/{repository}/blobs/uploads/", timeout=LIMIT_SECONDS)
    started.raise_for_status()
    location = started.headers["Location"]
    separator = "&" if "?" in location else "?"
    done = requests.put(f"{location}{separator}digest={digest(blob)}", data=blob, timeout=LIMIT_SECONDS)
    done.raise_for_status()
