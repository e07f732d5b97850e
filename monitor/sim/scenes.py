"""The scenes of the demo: an ordinary day, one outage after the other, and a healthy cluster at the end."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass

from monitor.present.guide import Guide
from monitor.sim.outages import OUTAGES

RECOVERY_SECONDS = 60.0  # until the alerts of the last outage are resolved


@dataclass(frozen=True)
class Scene:
    """A scene that begins at a time in seconds of the story, with the page to look at and the rule that reports it."""

    key: str
    at: float
    path: str
    rule: str | None = None


_AT = {outage.name: outage.at for outage in OUTAGES}
OVER_AT = max(outage.at + outage.lasts for outage in OUTAGES)
# The paths name nodes as `{disk}` and `{lost}`.
SCENES = (
    Scene("calm", 0, "/nodes/{disk}"),
    Scene("registry", _AT["registry lost on two nodes"], "/alerts", "registry-unreachable"),
    Scene("zombie", _AT["zombie job"], "/why?q=bert-large-0", "gpu-zombie"),
    Scene("notebook", _AT["idle notebook"], "/users/wang", "gpu-idle"),
    Scene("no-room", _AT["8-GPU job that fits no node"], "/why?q=llama-8gpu-0", "pod-pending"),
    Scene("disk", _AT["disk filling"], "/cleanup", "disk-full"),
    Scene("image", _AT["59 GB image"], "/alerts", "image-oversize"),
    Scene("shm", _AT["shm overflow"], "/pods/vision/detr-0", "shm-pressure"),
    Scene("portal", _AT["portal answers 502"], "/alerts", "service-down"),
    Scene("node", _AT["node down"], "/nodes/{lost}", "node-down"),
    Scene("deletion", _AT["mass deletion"], "/nodes/{disk}/disk?mount=/mnt/share", "mass-deletion"),
    Scene("recovery", OVER_AT, "/alerts"),
    Scene("healthy", OVER_AT + RECOVERY_SECONDS, "/report"),
)
_BEGINS = [scene.at for scene in SCENES]


def scene_at(elapsed: float) -> int:
    """Index of the scene at a time of the story."""
    return max(0, bisect_right(_BEGINS, elapsed) - 1)


def guide_of(index: int, nodes: Mapping[str, str], began: float, speed: float) -> Guide:
    """The guide of a scene of a story that `began` at a Unix time. `nodes` are the names for the paths."""
    scene = SCENES[index]
    following = SCENES[index + 1] if index + 1 < len(SCENES) else None
    return Guide(
        number=index + 1,
        total=len(SCENES),
        scene=scene.key,
        path=scene.path.format_map(nodes),
        rule=scene.rule,
        next_scene=None if following is None else following.key,
        next_at=None if following is None else began + following.at / speed,
    )
