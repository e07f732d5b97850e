"""Images that pile up on the engine's small disk, those that must stay, and whether all that went was planned."""

from __future__ import annotations

from pathlib import Path

from monitor.agent.actions.images import GUARD_PREFIX
from tests.chaos.page import Page
from tests.e2e import small_disk
from tests.lab.engine import IMAGE
from tests.lab.lab import Lab

HIGH, LOW = 0.70, 0.55
# All images are loaded, not pulled; pods to come are of the lab's own image, so that one is pinned.
POLICY = {
    "kind": "images", "name": "images", "mode": "enforce", "announce": "0s", "high": HIGH, "low": LOW,
    "min_age": "1s", "pins": ["harbor.lab/keep/*", IMAGE], "protect_local": False,
}  # fmt: skip
PINNED, USED = "harbor.lab/keep/base:1", "harbor.lab/nlp/runs:1"
SIZE, MEGABYTES = 12, 256  # of an image, and of their disk


class Images:
    """Who loads images and counts them."""

    def __init__(self, lab: Lab, disk: Path) -> None:
        self._lab = lab
        self._disk = disk
        self._made = 0
        self.removed = 0
        for name in (PINNED, USED):
            small_disk.load(lab, name, megabytes=2)
        self._known = small_disk.images(lab)

    def pile_up(self, may_cross: bool) -> bool:
        """Load one more, up to just above the mark at which the product has to act; return whether it is above now.

        For a minute after a pod has begun nothing is removed on its node: it might be about to name an image. A run
        that meets such a pod frees nothing, and the next comes half an hour later; so the mark is crossed in between.
        """
        used = small_disk.used_share(self._disk)
        if used < HIGH and (may_cross or used + 2 * SIZE / MEGABYTES < HIGH):
            self._made += 1
            name = f"harbor.lab/nlp/old-{self._made}:1"
            small_disk.load(self._lab, name, SIZE)
            self._known.add(name)
        return small_disk.used_share(self._disk) >= HIGH

    def unplanned(self, page: Page) -> list[str]:
        """Return which images have gone since the last time that no run has removed, or that nobody may remove."""
        # A removal keeps an image under a name of its own while it looks once more whether anybody uses it.
        now = {name for name in small_disk.images(self._lab) if f":{GUARD_PREFIX}" not in name}
        gone, self._known = self._known - now, now
        self.removed += len(gone)
        return sorted(gone - page.acted("images") | gone & {PINNED, USED, IMAGE}) if gone else []
