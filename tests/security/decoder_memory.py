"""Memory that the decoder keeps of pods with large parts, measured in a process of its own.

Prints the bytes that it was given and the bytes that it keeps. Other tests leave threads and caches behind.
"""

from __future__ import annotations

import gc
import tracemalloc

import msgspec

from monitor.kube.decode import stream
from tests.support.living_api import kube_pod

KINDS = ("resources", "tolerations", "affinity", "volumes")
PODS_PER_KIND = 10
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def large_pod(kind: str, number: int) -> bytes:
    """A list of one pod with a part of 100 KB that no other pod has."""
    texts = [f"example.com/r{number}-{each}" for each in range(3000)]
    item = kube_pod(f"p{number}")
    if kind == "resources":
        item["spec"]["containers"][0][kind] = {"limits": dict.fromkeys(texts, "1")}
    elif kind == "tolerations":
        item["spec"][kind] = [{"key": text} for text in texts]
    elif kind == "affinity":
        item["spec"][kind] = {"podAffinity": {REQUIRED: texts}}
    else:
        item["spec"][kind] = [
            {"name": "v", "projected": {"sources": [{"configMap": {"name": text}} for text in texts]}}
        ]
    return msgspec.json.encode({"items": [item]})


def kept_bytes(bodies: list[bytes]) -> int:
    """Bytes kept after decoding, without the interpreter's table of interned strings, one block that is not a pod's."""
    tracemalloc.start()
    for body in bodies:
        assert stream.decode_pod_list(body).skipped == 0
    gc.collect()
    blocks = tracemalloc.take_snapshot().traces
    return sum(block.size for block in blocks if block.size < 2 * max(map(len, bodies)))


def main() -> None:
    """Print the bytes given and kept."""
    bodies = [large_pod(kind, number) for kind in KINDS for number in range(PODS_PER_KIND)]
    print(sum(map(len, bodies)), kept_bytes(bodies))


if __name__ == "__main__":
    main()
