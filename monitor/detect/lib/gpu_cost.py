"""What GPUs that are held without use cost, as evidence; nothing without a price for all of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from monitor.cluster.holders import ended_holders, held_part
from monitor.detect.base import AGE, COST, CURRENCY, HOURLY_COST, UNSPENT_COST
from monitor.detect.lib.gpus import live_holders
from monitor.facts.cluster import GpuView, Holder
from monitor.facts.prices import GpuPrices, format_price
from monitor.facts.text import Text, Value

HOUR_SECONDS = 3600.0
WHOLE: tuple[Holder, ...] = (Holder(),)  # holds all of a GPU


class WastedGpu(NamedTuple):
    """A GPU that `holders` hold without use since a time. `sharing` is the number of those that divide its time."""

    gpu: GpuView
    since: float
    holders: Sequence[Holder] = WHOLE
    sharing: int = 1


def idle_gpu(gpu: GpuView, since: float) -> WastedGpu:
    """A GPU that live pods hold without use."""
    holders = live_holders(gpu)
    return WastedGpu(gpu, since, holders, len(holders))


def zombie_gpu(gpu: GpuView, since: float, holder: Holder) -> WastedGpu:
    """A GPU that a pod has not released."""
    return WastedGpu(gpu, since, (holder,), max(1, len(ended_holders(gpu))))


def cost_so_far(prices: GpuPrices | None, gpus: Sequence[WastedGpu]) -> tuple[Text, ...]:
    """What the GPUs cost since they have been wasted. Findings are as old as the first of them."""
    rates = [_hourly(prices, wasted) for wasted in gpus]
    known = [rate for rate in rates if rate is not None]
    if prices is None or not gpus or len(known) < len(rates):
        return ()
    first = min(wasted.since for wasted in gpus)
    unspent = sum(rate * (wasted.since - first) for rate, wasted in zip(known, gpus, strict=True)) / HOUR_SECONDS
    return (cost_text(sum(known), unspent, prices.currency),)


def cost_text(hourly: float, unspent: float, currency: str) -> Text:
    """A cost that grows by `hourly` an hour with the age of the finding, from `unspent` below 0."""
    values: dict[str, Value] = {HOURLY_COST: hourly, UNSPENT_COST: unspent, CURRENCY: currency, AGE: 0.0, COST: ""}
    return Text(key="gpu-cost", values=values | {"hourly": format_price(hourly, currency)})


def cost_of_window(prices: GpuPrices | None, gpus: Iterable[GpuView], window: float) -> tuple[Text, ...]:
    """What live pods cost by holding GPUs for the last `window` seconds."""
    rates = [_hourly(prices, idle_gpu(gpu, 0.0)) for gpu in gpus]
    known = [rate for rate in rates if rate is not None]
    if prices is None or len(known) < len(rates):
        return ()
    cost = format_price(sum(known) * window / HOUR_SECONDS, prices.currency)
    return (Text(key="gpu-cost.window", values={"cost": cost, "window": window}),)


def _hourly(prices: GpuPrices | None, wasted: WastedGpu) -> float | None:
    """Price of an hour of the parts of a GPU that its holders hold; None if it is unknown."""
    price = prices.of(wasted.gpu.model) if prices is not None else None
    parts = [held_part(holder, wasted.sharing) for holder in wasted.holders]
    known = [part for part in parts if part is not None]
    return price * min(1.0, sum(known)) if price is not None and len(known) == len(parts) else None
