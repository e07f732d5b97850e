"""Hypothesis strategies for snapshots of every shape."""

from __future__ import annotations

import types
import typing
from typing import Any

import msgspec
from hypothesis import strategies as st

from monitor.facts import (
    ContainerFact,
    ContainerUsageFact,
    DiskFact,
    DiskIoFact,
    EccFact,
    EvictionFact,
    GpuFact,
    GpuProcessFact,
    HostFact,
    ImageCacheFact,
    ImageFact,
    LogFact,
    MountFact,
    NodeSnapshot,
    ProbeFact,
    RetiredPagesFact,
    RuntimeUsageFact,
    ShmFact,
    VolumeFact,
    XidEvent,
)
from monitor.facts.actions import ActionsFact
from monitor.facts.gpu import MigFact, NvlinkFact
from monitor.facts.node import CollectorFact

# Fields that are not rebuilt from series, because no code reads them. Code that begins to read one removes it from this
# list and adds its series to the tables.
NOT_CARRIED: dict[type[msgspec.Struct], tuple[str, ...]] = {
    NodeSnapshot: ("schema",),
    CollectorFact: ("runs", "failures"),
    GpuFact: ("memory_clock_hertz", "performance_state", "persistence_mode", "compute_mode"),
    RetiredPagesFact: ("single_bit", "double_bit"),
    NvlinkFact: ("crc_flit_errors", "crc_data_errors", "replay_errors", "recovery_errors"),
    MigFact: ("memory_total_bytes", "memory_used_bytes"),
    ContainerFact: ("pid", "created_at", "finished_at"),
    ContainerUsageFact: ("cpu_seconds_total", "throttled_seconds_total", "memory_limit_bytes"),
    ShmFact: ("pid",),
    DiskIoFact: ("in_flight",),
    MountFact: ("latency_seconds",),
    # Cleanup reads these from the agent itself.
    ImageFact: ("digests", "created_at"),
    RuntimeUsageFact: ("layers_bytes", "build_cache_reclaimable_bytes"),
    VolumeFact: ("references",),
    ActionsFact: ("done", "failed", "running"),
}
# Fields that identify an object: unique on a node.
ALIKE: dict[type[msgspec.Struct], tuple[str, ...]] = {
    GpuProcessFact: ("gpu_uuid", "mig_uuid", "pid"),
    XidEvent: ("at",),
    DiskFact: ("mount",),
    LogFact: ("container_id",),
    ShmFact: ("container_id", "device"),
}

texts = st.text(st.characters(exclude_categories=("Cs", "Cc")), min_size=1, max_size=12)
figures = st.integers(0, 2**53)
reals = st.floats(0, 1e15, allow_nan=False)


def facts(kind: type[msgspec.Struct]) -> st.SearchStrategy[Any]:
    """Facts of a kind in every shape that an agent could report, without the fields that are not carried."""
    hints = typing.get_type_hints(kind)
    lost = NOT_CARRIED.get(kind, ())
    fields = {name: _of(hints[name]) for name in kind.__struct_fields__ if name not in lost}
    made = st.builds(kind, **fields)
    return made.map(_REPAIRS[kind]).filter(_says_something) if kind in _REPAIRS else made.filter(_says_something)


def snapshots(part: str) -> st.SearchStrategy[NodeSnapshot]:
    """Snapshots with one known part."""
    hint = typing.get_type_hints(NodeSnapshot)[part]
    return st.builds(NodeSnapshot, node=texts, at=reals, agent_version=texts, **{part: _of(hint)})


def _of(hint: Any) -> st.SearchStrategy[Any]:
    if typing.get_origin(hint) in (types.UnionType, typing.Union):
        return st.one_of([_of(each) for each in typing.get_args(hint)])
    if hint is type(None):
        return st.none()
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin is tuple:
        return _several(inner[0])
    if origin is dict:
        return st.dictionaries(texts, _of(inner[1]), max_size=2)
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        return facts(hint)
    return {str: texts, int: figures, float: reals, bool: st.booleans()}[hint]


def _several(kind: Any) -> st.SearchStrategy[Any]:
    if kind is str:
        return st.lists(texts, max_size=2, unique=True).map(tuple)
    keys = ALIKE.get(kind, kind.__struct_fields__[:1])
    return st.lists(facts(kind), max_size=2, unique_by=lambda one: tuple(getattr(one, key) for key in keys)).map(tuple)


def _says_something(fact: msgspec.Struct) -> bool:
    """Whether a fact has more than a name: without values it has no series, and no agent reports it."""
    if isinstance(fact, EccFact | RetiredPagesFact):
        return any(getattr(fact, name) is not None for name in fact.__struct_fields__)
    if isinstance(fact, ContainerUsageFact | EvictionFact | VolumeFact):
        return any(getattr(fact, name) is not None for name in fact.__struct_fields__[1:])
    if isinstance(fact, RuntimeUsageFact):
        return fact.writable_bytes is not None
    return not isinstance(fact, HostFact) or bool(fact.cpu_seconds_total)


def _process(fact: GpuProcessFact) -> GpuProcessFact:
    """Make the state bad if its start is set: only then is it reported."""
    state = "D" if fact.state_since is not None else fact.state
    return msgspec.structs.replace(fact, state=state)


def _container(fact: ContainerFact) -> ContainerFact:
    """Containers of pods have a name in the pod. Only the sandbox has the user of the pod."""
    if fact.sandbox:
        return msgspec.structs.replace(fact, image=None, image_id=None, container=None, log_path=None, started_at=None)
    in_pod = fact.pod_uid or fact.pod_name
    return msgspec.structs.replace(fact, container=(fact.container or "main") if in_pod else None, user=None)


def _probe(fact: ProbeFact) -> ProbeFact:
    return msgspec.structs.replace(fact, stage=None, cause=None) if fact.ok else fact


def _image(fact: ImageFact) -> ImageFact:
    """Remove @ from names, which marks a digest."""
    return msgspec.structs.replace(fact, names=tuple(name.replace("@", "_") for name in fact.names[:1]))


_REPAIRS: dict[type[msgspec.Struct], Any] = {
    GpuProcessFact: _process,
    ContainerFact: _container,
    ProbeFact: _probe,
    ImageFact: _image,
    ImageCacheFact: lambda fact: msgspec.structs.replace(fact, version=fact.version or "1"),
}
