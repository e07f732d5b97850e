"""Display styles: unit, range, thresholds and value mappings of a panel or a table column.

Thresholds are the defaults of gpuwarden's rules; colours are those of its web page.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from grafana_foundation_sdk.builders.dashboard import ThresholdsConfig
from grafana_foundation_sdk.models import common
from grafana_foundation_sdk.models.dashboard import (
    Threshold,
    ThresholdsMode,
    ValueMap,
    ValueMapping,
    ValueMappingResult,
)

from dashboards.generate.words import Words

GOOD, INFO, WARNING, CRITICAL, PLAIN = "#18794e", "#3b6ea8", "#b25e09", "#c4291c", "#3577c4"
# In the order in which the state timeline numbers them.
STATES = {
    "free": "#a9cdb4",
    "busy": "#3577c4",
    "idle-held": "#f6cf84",
    "zombie": "#d03f33",
    "orphan": "#a347b3",
    "ghost": "#7461c9",
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
# Colours of series by name; the displayed name is the term `<palette>.<series>`.
PALETTES: Mapping[str, Mapping[str, str]] = {
    "state": STATES,
    "severity": SEVERITIES,
    "outcome": OUTCOMES,
    "alert": ALERTS,
}


@dataclass(frozen=True)
class Style:
    """How values are displayed. `values` maps a value to its term and colour."""

    unit: str | None = None
    steps: tuple[tuple[float, str], ...] = ()
    base: str | None = None
    min: float | None = None
    max: float | None = None
    decimals: int | None = None
    values: Mapping[str, tuple[str, str]] = field(default_factory=dict)

    @property
    def is_count(self) -> bool:
        return self.unit == "none" and self.decimals is None

    def thresholds(self) -> ThresholdsConfig:
        base = Threshold(None, self.base or (GOOD if self.steps else PLAIN))
        steps = [Threshold(value, colour) for value, colour in self.steps]
        return ThresholdsConfig().mode(ThresholdsMode.ABSOLUTE).steps([base, *steps])

    def mappings(self, words: Words) -> list[ValueMapping]:
        if not self.values:
            return []
        results = {
            value: ValueMappingResult(text=words.terms[term], color=colour, index=index)
            for index, (value, (term, colour)) in enumerate(self.values.items())
        }
        return [ValueMap(results)]

    def cell(self) -> common.TableCellOptions | None:
        """Cell of a table: a gauge for ratios, a coloured background for words, coloured text above a threshold."""
        if self.max is not None:
            return common.TableBarGaugeCellOptions(common.BarGaugeDisplayMode.BASIC, common.BarGaugeValueMode.TEXT)
        if self.values and self.unit is None:
            return common.TableColoredBackgroundCellOptions(common.TableCellBackgroundDisplayMode.BASIC)
        return common.TableColorTextCellOptions() if self.steps else None


def _ratio(*steps: tuple[float, str]) -> Style:
    return Style("percentunit", steps, min=0, max=1, decimals=0)


def _flag(one: tuple[str, str], zero: tuple[str, str]) -> Style:
    return Style(values={"1": one, "0": zero})


_HOUR_SECONDS, _GIB_BYTES = 3600, 1024**3

COUNT = Style("none", min=0)
WARN_ABOVE_ZERO = Style("none", ((1, WARNING),), min=0)
CRITICAL_ABOVE_ZERO = Style("none", ((1, CRITICAL),), min=0)
WARN_AT_ZERO = Style("none", ((1, GOOD),), base=WARNING, min=0)
QUEUE_LENGTH = Style("none", ((4, WARNING),), min=0, decimals=1)
CORES = Style("none", min=0, decimals=2)
RATIO = _ratio()
DISK_RATIO = _ratio((0.8, WARNING), (0.9, CRITICAL))
IO_RATIO = _ratio((0.7, WARNING), (0.9, CRITICAL))
MEMORY_RATIO = _ratio((0.9, WARNING), (0.98, CRITICAL))
SHM_RATIO = _ratio((0.85, WARNING), (0.95, CRITICAL))
LOAD_RATIO = Style("percentunit", ((1, WARNING),), min=0, decimals=0)
HEADROOM_RATIO = Style("percentunit", ((0.02, WARNING), (0.1, GOOD)), base=CRITICAL, decimals=0)
BYTES = Style("bytes", min=0)
IMAGE_BYTES = Style("bytes", ((30 * _GIB_BYTES, WARNING),), min=0)
BYTES_PER_SECOND = Style("binBps", min=0)
PER_SECOND = Style("cps", min=0)
SECONDS = Style("s", min=0)
PROBE_SECONDS = Style("s", ((1, WARNING), (5, CRITICAL)), min=0)
AGE_SECONDS = Style("s", ((60, WARNING), (300, CRITICAL)), min=0)
FULL_IN_SECONDS = Style("s", ((4 * _HOUR_SECONDS, WARNING), (24 * _HOUR_SECONDS, GOOD)), base=CRITICAL)
SINCE = Style("dateTimeFromNow", values={"0": ("not-known", PLAIN)})
CELSIUS = Style("celsius", ((83, WARNING), (92, CRITICAL)))
WATT = Style("watt", min=0)
HERTZ = Style("hertz", min=0)
STATE = Style(values={state: (f"state.{state}", colour) for state, colour in STATES.items()})
STATE_NUMBER = Style(values={str(number): value for number, value in enumerate(STATE.values.values(), 1)})
SEVERITY = Style(values={severity: (f"severity.{severity}", colour) for severity, colour in SEVERITIES.items()})
UP = _flag(("up", GOOD), ("down", CRITICAL))
READY = _flag(("ready", GOOD), ("not-ready", CRITICAL))
SCHEDULABLE = _flag(("open", GOOD), ("cordoned", WARNING))
SILENT = _flag(("silent", CRITICAL), ("answers", GOOD))
PROBLEM = _flag(("yes", CRITICAL), ("no", GOOD))
THROTTLED = _flag(("slowed", WARNING), ("no", GOOD))
NOTICE = _flag(("yes", INFO), ("no", GOOD))
LEASE = _flag(("yes", GOOD), ("no", INFO))
