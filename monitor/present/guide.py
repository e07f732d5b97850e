"""The guide of the demo: what happens now, what gpuwarden says about it, where to look, and what comes next. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from monitor.i18n import say


@dataclass(frozen=True)
class Guide:
    """A scene of the demo. `scene` is its key in the catalogs and `rule` the one that reports it, if any does.

    `path` is the page to look at. `next_scene` begins at `next_at`; both are None in the last scene.
    """

    number: int
    total: int
    scene: str
    path: str
    rule: str | None = None
    next_scene: str | None = None
    next_at: float | None = None


@dataclass(frozen=True)
class GuideText:
    """A guide in one language."""

    title: str
    now: str
    says: str
    look: str
    next_title: str | None


def guide_text(guide: Guide, lang: str) -> GuideText:
    """The texts of a guide."""
    alert = {} if guide.rule is None else {"alert": say(lang, f"rule.{guide.rule}", {})}
    return GuideText(
        title=say(lang, f"demo.{guide.scene}.title", {}),
        now=say(lang, f"demo.{guide.scene}.now", {}),
        says=say(lang, f"demo.{guide.scene}.says", alert),
        look=say(lang, f"demo.{guide.scene}.look", {}),
        next_title=None if guide.next_scene is None else say(lang, f"demo.{guide.next_scene}.title", {}),
    )
