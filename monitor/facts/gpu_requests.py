"""What a pod asks for of GPUs: whole ones, shares of them, or other accelerators."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from monitor.facts.gpu_resources import (
    GPU_RESOURCE,
    PERCENTAGES,
    UNIT_BYTES,
    Family,
    GpuResource,
    Part,
    Unit,
    resource_kind,
)
from monitor.facts.text import Value

Amounts = Mapping[str, float]
MAX_RESOURCES = 16  # of one request
_GIB_BYTES = 1024**3
_MIB_BYTES = 1024**2
_PARTS = tuple(Part)  # a count says more than an amount of memory, and that more than cores
HAMI_PREFIX = "hami.io/"
HAMI_SCHEDULER = "hami-scheduler"


def main_resource(requests: Amounts, default: str) -> str | None:
    """The GPU resource by which a request is counted: the default one, else a count, memory or cores; None without."""
    if requests.get(default):
        return default
    kinds = [kind for name, amount in requests.items() if amount and (kind := resource_kind(name)) is not None]
    return min(kinds, key=_precedence).name if kinds else None


def _precedence(kind: GpuResource) -> tuple[bool, int, str]:
    return kind.family is Family.OTHER, _PARTS.index(kind.part), kind.name


def gpu_amounts(requests: Amounts, default: str, counted_as: str = GPU_RESOURCE) -> dict[str, float]:
    """The part of a request that is about GPUs, the main resource first.

    `counted_as`: what one GPU is (`monitor.facts.gpu_nodes`).
    """
    main = main_resource(requests, default)
    if main is None:
        return {}
    amounts = {main: requests[main]}
    for name in sorted([name for name, much in requests.items() if much and name != main and resource_kind(name)]):
        if len(amounts) < MAX_RESOURCES:
            amounts[name] = requests[name]
    return amounts if counted_as == GPU_RESOURCE else renamed(amounts, counted_as)


def renamed(amounts: Amounts, counted_as: str) -> dict[str, float]:
    """The amounts with GPUs under the name as which they are counted."""
    return {counted_as if name == GPU_RESOURCE else name: amount for name, amount in amounts.items()}


def whole_gpus(amounts: Amounts, default: str) -> float:
    """Number of whole GPUs among the amounts."""
    return sum(amount for name, amount in amounts.items() if is_whole(name, default))


def share_amounts(amounts: Amounts, default: str) -> dict[str, float]:
    """The amounts of shares and other accelerators, without those of whole GPUs."""
    return {name: amount for name, amount in amounts.items() if not is_whole(name, default)}


def is_whole(name: str, default: str) -> bool:
    """Whether one unit of the resource is a whole GPU. The default resource is, unless the table knows better."""
    kind = resource_kind(name)
    return name in (GPU_RESOURCE, default) and (kind is None or kind.unit in (Unit.GPU, Unit.DEVICE))


def amount_value(amounts: Amounts, default: str) -> Value:
    """Amounts as a value for texts (format `gpus`): a number of GPUs, or `resource=amount,…` for anything else."""
    if not amounts:
        return 0
    (name, amount), *others = amounts.items()
    kind = resource_kind(name)
    if not others and is_whole(name, default) and (kind is None or kind.unit is Unit.GPU):
        return round(amount)
    return ",".join(f"{each}={_plain(much)}" for each, much in amounts.items())


def parse_amounts(text: str) -> dict[str, float]:
    """Amounts of a value that `amount_value` wrote; empty if it is something else."""
    amounts: dict[str, float] = {}
    for part in text.split(",")[:MAX_RESOURCES]:
        name, equals, amount = part.partition("=")
        try:
            amounts[name] = float(amount)
        except ValueError:
            return {}
        if not equals or "/" not in name:
            return {}
    return amounts


def brief(resource: str, amount: float) -> Value:
    """An amount of one resource in its unit, without a noun: a number of devices, `10 GiB`, `50%`."""
    kind = resource_kind(resource)
    if kind is None or kind.countable or kind.unit is Unit.UNKNOWN:
        return round(amount) if amount == round(amount) else round(amount, 2)
    if kind.unit in PERCENTAGES:
        return f"{_plain(amount)}%"
    return _size(amount * UNIT_BYTES[kind.unit], kind.unit)


def _size(size_bytes: float, unit: Unit) -> str:
    """Bytes in the unit of the request if that is MiB or GiB, so that the reader recognises the figure."""
    if unit is Unit.MIB or (size_bytes % _GIB_BYTES and size_bytes < 1024 * _GIB_BYTES):
        return f"{_plain(round(size_bytes / _MIB_BYTES, 1))} MiB"
    return f"{_plain(round(size_bytes / _GIB_BYTES, 1))} GiB"


def _plain(amount: float) -> str:
    """A number without exponent or trailing zeros."""
    return str(round(amount)) if amount == round(amount) else f"{amount:.3f}".rstrip("0")


def is_hami(annotations: Iterable[str], scheduler: str | None, requests: Amounts) -> bool:
    """Whether a pod is HAMi's, in which case the GPUs that it requests are slots."""
    kinds = (kind for name in requests if (kind := resource_kind(name)) is not None)
    return (
        scheduler == HAMI_SCHEDULER
        or any(kind.family is Family.HAMI for kind in kinds)
        or any(name.startswith(HAMI_PREFIX) for name in annotations)
    )
