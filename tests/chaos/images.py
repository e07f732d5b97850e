"""Images that fill the engine's small disk, those that must stay, and whether every removal was planned."""

from __future__ import annotations

from pathlib import Path

from monitor.agent.actions.images import GUARD_PREFIX
from tests.chaos.page import Page
from tests.e2e import small_disk
from tests.lab.images import IMAGE
from tests.lab.lab import Lab

HIGH, LOW = 0.70, 0.55
# Images are loaded, not pulled; future pods use the lab's own image, so it is pinned.
POLICY = {
    "kind": "images", "name": "images", "mode": "enforce", "announce": "0s", "high": HIGH, "low": LOW,
    "min_age": "1s", "pins": ["harbor.lab/keep/*", IMAGE], "protect_local": False,
}  # fmt: skip
PINNED, USED = "harbor.lab/keep/base:1", "harbor.lab/nlp/runs:1"
SIZE, MEGABYTES = 12, 256  # per image, and of their disk


class Images:
    """Loads and counts images."""

    def __init__(self, lab: Lab, disk: Path) -> None:
        self._lab = lab
        self._disk = disk
        self._made = 0
        self.removed = 0
        for name in (PINNED, USED):
            small_disk.load(lab, name, megabytes=2)
        self._known = lab.engine.images()

    def pile_up(self, may_cross: bool) -> bool:
        """Load one more image, up to just above the cleanup threshold; return whether usage is above it.

        For one minute after a pod starts, images on its node are not removed, because the pod may name one. A run at
        that time frees nothing and the next is half an hour later, so the threshold is crossed outside that minute.
        """
        used = small_disk.used_share(self._disk)
        if used < HIGH and (may_cross or used + 2 * SIZE / MEGABYTES < HIGH):
            self._made += 1
            name = f"harbor.lab/nlp/old-{self._made}:1"
            small_disk.load(self._lab, name, SIZE)
            self._known.add(name)
        return small_disk.used_share(self._disk) >= HIGH

    def unplanned(self, page: Page) -> list[str]:
        """Images that disappeared since the last call without being removed by a run, or that are protected."""
        # A removal keeps an image under a temporary name while it rechecks whether the image is in use.
        now = {name for name in self._lab.engine.images() if f":{GUARD_PREFIX}" not in name}
        gone, self._known = self._known - now, now
        self.removed += len(gone)
        return sorted(gone - page.acted("images") | gone & {PINNED, USED, IMAGE}) if gone else []
