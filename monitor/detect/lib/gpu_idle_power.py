"""What a card draws when it does nothing, learnt by watching it; and when it last drew more than that. Pure."""

from __future__ import annotations

from typing import Any

from monitor.detect.base import RuleContext
from monitor.detect.lib.gpus import BlindSpots, gpu_facts, gpu_key
from monitor.facts.gpu import GpuFact

NUMBER = (float, int)
PowerHistory = dict[str, list[float]]  # card -> the least power ever seen, and when it last drew far more than that


def track_power(
    memory: Any,
    context: RuleContext,
    blind: BlindSpots,
    veto: tuple[float, float],
) -> PowerHistory:
    """Given what was remembered, return for each card the least it drew and when it last worked by its power.

    `veto` is how many times the least, and what share of the rest up to the limit, a card draws when it works.
    """
    before = memory if isinstance(memory, dict) else {}
    facts, draws = gpu_facts(context), {}
    view = context.facts.view
    for gpu in view.gpus if view else ():
        key, fact = gpu_key(gpu), facts.get((gpu.node, gpu.index))
        known = _known(before.get(key))
        if fact is not None and fact.power_watts is not None and not blind.covers(gpu.node):
            least = min(known[0], fact.power_watts) if known else fact.power_watts
            worked = context.now if _works(fact, least, veto) else known[1] if known else 0.0
            draws[key] = [least, min(worked, context.now)]  # a clock may have been set back
        elif known:
            draws[key] = known
    return draws


def _known(value: Any) -> list[float] | None:
    """Return what was remembered of a card, if it is that: an older version may have left anything."""
    if not isinstance(value, list) or len(value) != 2:
        return None
    return value if isinstance(value[0], NUMBER) and isinstance(value[1], NUMBER) else None


def _works(fact: GpuFact, least: float, veto: tuple[float, float]) -> bool:
    power, limit = fact.power_watts or 0.0, fact.power_limit_watts
    times, share = veto
    between = least + share * (limit - least) if limit is not None else 0.0
    return power > max(times * least, between)
