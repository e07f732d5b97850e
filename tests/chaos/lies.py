"""Invalid agent responses: not a snapshot, another node's name, and false data."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from typing import Any

HUGE = 1 << 60


def truncated(body: bytes) -> bytes:
    return body[: len(body) // 2]


def garbage(body: bytes) -> bytes:
    return random.Random(len(body)).randbytes(len(body))


def empty(body: bytes) -> bytes:
    return b"{}"


def other_name(node: str) -> Callable[[bytes], bytes]:
    """A forger that makes an agent report as another node."""
    return lambda body: _changed(body, lambda told: told.update(node=node))


def lies(cards: Sequence[str], pods: Sequence[str]) -> Callable[[bytes], bytes]:
    """A forger that claims other nodes' GPUs and pods, with impossible figures."""

    def lie(told: dict[str, Any]) -> None:
        told["at"] = 4e9  # in the next century
        told["gpu"] = {"gpus": [_card(index, uuid) for index, uuid in enumerate(cards)]}
        held = [{"gpu_uuid": card, "pid": 1 << 30, "kind": "compute", "state": "gone"} for card in cards]
        told["gpu_processes"] = [each | {"pod_uid": pod} for each in held for pod in (*pods, None)]
        told["disk"] = [
            {"mount": "/", "device": "/dev/sda", "fstype": "ext4", "roles": ["system"], "size_bytes": 1,
             "used_bytes": HUGE, "available_bytes": 0, "inodes": 1, "inodes_used": HUGE, "read_only": True}
        ]  # fmt: skip
        told["xid"] = {"counts": [{"code": 79, "count": HUGE, "last_at": -1.0, "gpu_uuid": card} for card in cards]}

    return lambda body: _changed(body, lie)


def _card(index: int, uuid: str) -> dict[str, Any]:
    return {
        "index": index, "uuid": uuid, "lost": True, "temperature_celsius": 1e6, "utilization_ratio": 1e9,
        "memory_total_bytes": 1, "memory_used_bytes": HUGE,
    }  # fmt: skip


def _changed(body: bytes, change: Callable[[dict[str, Any]], None]) -> bytes:
    told = json.loads(body)
    change(told)
    return json.dumps(told).encode()
