"""The pictures: what each shows, when it can be taken, and on which screen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from docs.screenshots.demo import Demo

ZOMBIE_RULE = "gpu-zombie"
MIN_MESSAGES = 3


@dataclass(frozen=True)
class Screen:
    """Width and height in CSS pixels, and how many pixels of the picture each of them has."""

    width: int
    height: int
    scale: float = 1.0


DESKTOP, PHONE = Screen(1280, 860), Screen(390, 844, 1.5)


@dataclass(frozen=True)
class Shot:
    """A picture. `find` returns the address of the page as soon as the demo shows what the picture is about."""

    name: str
    screen: Screen
    find: Callable[[Demo], str | None]


def _overview(demo: Demo) -> str | None:
    return demo.page if ZOMBIE_RULE in _firing(demo) else None


def _alert(demo: Demo) -> str | None:
    fingerprint = _firing(demo).get(ZOMBIE_RULE)
    return None if fingerprint is None else f"{demo.page}/alerts/{fingerprint}"


def _group(demo: Demo) -> str | None:
    sent = [delivery for delivery in demo.ask("/v1/deliveries") if delivery["state"] == "sent"]
    return demo.group if len(sent) >= MIN_MESSAGES else None


def _cleanup(demo: Demo) -> str | None:
    done = [run for run in demo.ask("/v1/cleanup/history") if run["run"].get("freed_bytes")]
    return f"{demo.page}/cleanup" if done else None


def _report(demo: Demo) -> str | None:
    return f"{demo.page}/report" if demo.ask("/v1/report?since=7d&by=user")["rows"] else None


def _firing(demo: Demo) -> dict[str, str]:
    """Fingerprint of the latest firing alert of each rule."""
    alerts = demo.ask("/v1/alerts")
    return {alert["rule"]: alert["fingerprint"] for alert in alerts if alert["phase"] == "firing"}


# In the order in which the demo gets there.
SHOTS = (
    Shot("overview", DESKTOP, _overview),
    Shot("overview-phone", PHONE, _overview),
    Shot("alert-phone", PHONE, _alert),
    Shot("wecom-phone", PHONE, _group),
    Shot("cleanup", DESKTOP, _cleanup),
    Shot("report", DESKTOP, _report),
)
