"""Alert latency by cluster size: the daemon of `make soak` at two sizes."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from tests.soak.run import Plan, run

LARGE, SMALL = 1000, 100  # nodes of 8 GPUs with ten pods each
MINUTES = 3.0
WARM_UP = 40.0  # seconds of warm-up whose failures do not count


def told(nodes: int) -> list[float]:
    """Seconds of each message in a cluster of this many nodes; RuntimeError if one is missing."""
    with TemporaryDirectory() as name:
        canaries = run(Plan(MINUTES, nodes), Path(name)).canaries
    if silent := [each.name for each in canaries if each.told is None]:
        raise RuntimeError(f"with {nodes} nodes nothing was told of {', '.join(silent)}")
    return [each.told for each in canaries if each.told is not None and each.at >= WARM_UP]
