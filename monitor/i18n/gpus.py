"""Amounts of GPUs, of shares of them and of other accelerators in words. Pure."""

from __future__ import annotations

from collections.abc import Container, Iterable

from monitor.facts.gpu_requests import brief, parse_amounts
from monitor.facts.gpu_resources import PERCENTAGES, UNIT_BYTES, Family, GpuResource, Part, Unit, resource_kind
from monitor.i18n.en.gpus import GPUS as EN
from monitor.i18n.figures import number, percent
from monitor.i18n.zh.gpus import GPUS as ZH

_WORDS = {"en": EN, "zh": ZH}
_PARTS = tuple(Part)
_MEMORY = "nvidia.com/gpumem"
_VGPU = (Family.HAMI, Family.VOLCANO)


def free_gpus(value: str | float, lang: str) -> str:
    """The same as free: `8 free GPUs`, `10 GiB of GPU memory free`."""
    if isinstance(value, str):
        return _say(lang, "free-share", gpus(value, lang))
    return _say(lang, "free", number(value))


def gpus(value: str | float, lang: str) -> str:
    """`8 GPUs` of a number; `1 vGPU (8000 MiB, 50% of the cores)` or `10 GiB of GPU memory` of `resource=amount,…`."""
    if not isinstance(value, str):
        return _say(lang, "whole", number(value))
    amounts = [(_kind(name), str(brief(name, amount))) for name, amount in parse_amounts(value).items()]
    counts = [each for each in amounts if each[0].countable]
    shares = sorted((each for each in amounts if not each[0].countable), key=lambda each: _PARTS.index(each[0].part))
    words = _WORDS[lang]
    families = {kind.family for kind, _ in shares}
    named = [_say(lang, _count_key(kind, families), amount, _name(kind)) for kind, amount in counts]
    parts = [
        _say(lang, f"with.{_share_key(kind)}", amount, kind.name) for kind, amount in shares if _restricts(kind, counts)
    ]
    if parts:
        named = [words["with"].format(counted=words["and"].join(named), shares=words["comma"].join(parts))]
    alone = [_say(lang, _share_key(kind), amount, kind.name) for kind, amount in shares if not _restricts(kind, counts)]
    return words["and"].join(named + alone) or value


def _restricts(kind: GpuResource, counts: Iterable[tuple[GpuResource, str]]) -> bool:
    """Whether an amount of memory or cores is that of the devices counted, of the same family. HAMi uses NVIDIA's."""
    families = {counted.family for counted, _ in counts}
    return kind.family in families or (kind.family is Family.HAMI and Family.NVIDIA in families)


def share(slots: int | None, memory_bytes: int | None, cores_ratio: float | None, lang: str) -> str:
    """The part of a GPU that a pod may use: `3000 MiB, 30% of the cores`, else the number of slots; empty without."""
    parts = []
    if memory_bytes is not None:
        parts.append(_say(lang, "with.memory", str(brief(_MEMORY, memory_bytes / UNIT_BYTES[Unit.MIB]))))
    if cores_ratio is not None:
        parts.append(_say(lang, "with.cores", percent(cores_ratio)))
    if not parts and slots is not None:
        parts.append(_say(lang, "shared", number(slots)))
    return _WORDS[lang]["comma"].join(parts)


def _say(lang: str, key: str, amount: str, name: str = "") -> str:
    words = _WORDS[lang]
    template = words.get(f"{key}.one") if amount == "1" else None
    return (template or words[key]).format(amount=amount, name=name)


def _kind(name: str) -> GpuResource:
    """What is known about a resource; one that the table does not know is a device."""
    return resource_kind(name) or GpuResource(name, Family.OTHER, Unit.DEVICE)


def _name(kind: GpuResource) -> str:
    return kind.name.rpartition("/mig-")[2] if kind.unit is Unit.SLICE else kind.name


def _count_key(kind: GpuResource, shares: Container[Family]) -> str:
    """Key of a count; an amount of memory or cores of the same family makes it a share. HAMi uses NVIDIA's counts."""
    if kind.unit in (Unit.DEVICE, Unit.SLICE, Unit.GPU_OR_SLOT):
        return kind.unit.value
    restricted = kind.family in shares
    if kind.unit is Unit.GPU and not restricted:
        return "whole"
    hami = kind.family is Family.NVIDIA and Family.HAMI in shares
    return "vgpu" if restricted or hami or kind.family in _VGPU else "shared"


def _share_key(kind: GpuResource) -> str:
    if kind.family is Family.OTHER or kind.unit is Unit.UNKNOWN:
        return "other"
    return "memory-percent" if kind.part is Part.MEMORY and kind.unit in PERCENTAGES else kind.part.value
