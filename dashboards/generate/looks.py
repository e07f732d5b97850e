"""How values look: units, limits, colours, and words for numbers. A look is a set of properties of Grafana's fields.

The limits are the defaults of gpuwarden's rules, and the colours are those of its own page.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from dashboards.generate.words import Words

Look = dict[str, Any]
Step = tuple[float, str]

GOOD, INFO, WARNING, CRITICAL, PLAIN = "#18794e", "#3b6ea8", "#b25e09", "#c4291c", "#3d7cc9"
# In the order in which a lane of a timeline numbers them.
STATES: dict[str, str] = {
    "free": "#a9cdb4",
    "busy": "#3d7cc9",
    "idle-held": "#f6cf84",
    "zombie": "#e5554a",
    "orphan": "#b55bc4",
    "ghost": "#8f7be0",
    "wedged": "#8c1d18",
    "phantom": "#d98bb3",
    "faulty": "#5b1a17",
    "unknown": "#c9ced4",
}
SEVERITIES = {"critical": CRITICAL, "warning": WARNING, "info": INFO}
OUTCOMES = {"sent": GOOD, "failed": CRITICAL, "parked": WARNING}
ALERTS = {
    "firing": CRITICAL,
    "pending": WARNING,
    "silenced": INFO,
    "maintenance": STATES["ghost"],
    "inhibited": STATES["unknown"],
}
SERIES: dict[str, Mapping[str, str]] = {"state": STATES, "severity": SEVERITIES, "outcome": OUTCOMES, "alert": ALERTS}


def thresholds(*steps: Step, base: str = GOOD) -> Look:
    """Given from which value on which colour is shown, return Grafana's thresholds."""
    listed = [{"color": base, "value": None}, *({"color": colour, "value": value} for value, colour in steps)]
    return {"thresholds": {"mode": "absolute", "steps": listed}}


def _said(pairs: Mapping[str, tuple[str, str]]) -> Look:
    """Given values with their word and colour, return mappings of values."""
    options = {
        value: {"color": colour, "index": index, "text": word}
        for index, (value, (word, colour)) in enumerate(pairs.items())
    }
    return {"mappings": [{"type": "value", "options": options}]}


def _share(warning: float | None = None, critical: float | None = None) -> Callable[[Words], Look]:
    steps = [(limit, colour) for limit, colour in ((warning, WARNING), (critical, CRITICAL)) if limit is not None]
    base = GOOD if steps else PLAIN
    return lambda _: {"unit": "percentunit", "min": 0, "max": 1, "decimals": 0, **thresholds(*steps, base=base)}


def _unit(unit: str, *steps: Step, **more: Any) -> Callable[[Words], Look]:
    return lambda _: {"unit": unit, **more, **thresholds(*steps, base=GOOD if steps else PLAIN)}


def _flag(one: tuple[str, str], zero: tuple[str, str]) -> Callable[[Words], Look]:
    """Given the words and colours of 1 and of 0, return how a yes or no looks."""

    def look(words: Words) -> Look:
        pairs = {"1": (words.said(one[0]), one[1]), "0": (words.said(zero[0]), zero[1])}
        return {**_said(pairs), **thresholds(base=PLAIN)}

    return look


def _states(words: Words) -> Look:
    pairs = {state: (words.state(state), colour) for state, colour in STATES.items()}
    return {**_said(pairs), **thresholds(base=PLAIN)}


def _numbered_states(words: Words) -> Look:
    pairs = {str(number): (words.state(state), colour) for number, (state, colour) in enumerate(STATES.items(), 1)}
    return {**_said(pairs), **thresholds(base=PLAIN)}


def _severities(words: Words) -> Look:
    pairs = {severity: (words.severity(severity), colour) for severity, colour in SEVERITIES.items()}
    return {**_said(pairs), **thresholds(base=PLAIN)}


def _since(words: Words) -> Look:
    """A time, of which 0 says that it is not known."""
    return {"unit": "dateTimeFromNow", **_said({"0": (words.said("not-known"), PLAIN)}), **thresholds(base=PLAIN)}


_HOUR, _GIB = 3600.0, 1024.0**3

LOOKS: dict[str, Callable[[Words], Look]] = {
    "number": _unit("none", min=0),
    "tolerated": _unit("none", (1, WARNING), min=0),
    "never": _unit("none", (1, CRITICAL), min=0),
    "wanted": lambda _: {"unit": "none", "min": 0, **thresholds((1, GOOD), base=WARNING)},
    "cores": _unit("none", min=0, decimals=2),
    "share": _share(),
    "share-disk": _share(0.8, 0.9),
    "share-io": _share(0.7, 0.9),
    "share-memory": _share(0.9, 0.98),
    "share-shm": _share(0.85, 0.95),
    "share-load": lambda _: {"unit": "percentunit", "min": 0, "decimals": 0, **thresholds((1, WARNING))},
    "share-room": lambda _: {
        "unit": "percentunit",
        "decimals": 0,
        **thresholds((0.02, WARNING), (0.1, GOOD), base=CRITICAL),
    },
    "bytes": _unit("bytes", min=0),
    "bytes-image": _unit("bytes", (30 * _GIB, WARNING), min=0),
    "bytes-rate": _unit("binBps", min=0),
    "rate": _unit("cps", min=0),
    "seconds": _unit("s", min=0),
    "seconds-probe": _unit("s", (1, WARNING), (5, CRITICAL), min=0),
    "age": _unit("s", (60, WARNING), (300, CRITICAL), min=0),
    "until-full": lambda _: {"unit": "s", **thresholds((4 * _HOUR, WARNING), (24 * _HOUR, GOOD), base=CRITICAL)},
    "since": _since,
    "celsius": _unit("celsius", (83, WARNING), (92, CRITICAL)),
    "watt": _unit("watt", min=0),
    "hertz": _unit("hertz", min=0),
    "queue-length": _unit("none", (4, WARNING), min=0, decimals=1),
    "state": _states,
    "state-number": _numbered_states,
    "severity": _severities,
    "up": _flag(("up", GOOD), ("down", CRITICAL)),
    "ready": _flag(("ready", GOOD), ("not-ready", CRITICAL)),
    "schedulable": _flag(("open", GOOD), ("cordoned", WARNING)),
    "silent": _flag(("silent", CRITICAL), ("answers", GOOD)),
    "trouble": _flag(("yes", CRITICAL), ("no", GOOD)),
    "slowed": _flag(("slowed", WARNING), ("no", GOOD)),
    "noted": _flag(("yes", INFO), ("no", GOOD)),
    "held": _flag(("yes", GOOD), ("no", INFO)),
}
