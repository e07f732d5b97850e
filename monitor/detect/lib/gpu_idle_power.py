"""Idle power of a GPU, learnt by observation, and when it last drew considerably more."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from monitor.facts.gpu import GpuFact

NUMBER = (float, int)
PowerHistory = dict[str, list[float]]  # GPU -> lowest power seen, and when it last drew far more


def track_power(memory: Any, gpus: Mapping[str, GpuFact], veto: tuple[float, float], now: float) -> PowerHistory:
    """The lowest power of each GPU, and when it last worked according to its power.

    `veto` is the multiple of the lowest power, and the share of the range up to the limit, that a working GPU exceeds.
    """
    before, history = memory if isinstance(memory, dict) else {}, {}
    for key, fact in gpus.items():
        known = _known(before.get(key))
        if fact.power_watts is not None:
            least = min(known[0], fact.power_watts) if known else fact.power_watts
            worked = now if _works(fact, least, veto) else known[1] if known else 0.0
            history[key] = [least, min(worked, now)]  # the clock may have been set back
        elif known:
            history[key] = known
    return history


def _known(value: Any) -> list[float] | None:
    """The remembered pair, if valid; an older version may have stored anything."""
    if not isinstance(value, list) or len(value) != 2:
        return None
    return value if isinstance(value[0], NUMBER) and isinstance(value[1], NUMBER) else None


def _works(fact: GpuFact, least: float, veto: tuple[float, float]) -> bool:
    power, limit = fact.power_watts or 0.0, fact.power_limit_watts
    times, share = veto
    between = least + share * (limit - least) if limit is not None else 0.0
    return power > max(times * least, between)
