"""Arbitrary facts generated from their types, so that new fields are fuzzed automatically."""

from __future__ import annotations

from functools import cache
from typing import Any

from hypothesis import strategies as st
from msgspec import inspect, structs

from tests.explain.builders import NOW

# Few names, so that facts refer to each other; times close to now, or absurd.
NAMES = ("n1", "n2", "uid-1", "uid-2", "p", "team", "main", "GPU-1", "c" * 64, "harbor.lab/a:1", "/", "/mnt/data", "")
WORDS = (
    "Running", "Pending", "Failed", "Succeeded", "waiting", "running", "terminated", "ImagePullBackOff", "failed", "ok",
    "ErrImagePull", "CrashLoopBackOff", "ContainerCreating", "FailedMount", "FailedScheduling", "Failed", "Pulling",
    "Ready", "DiskPressure", "True", "nvidia.com/gpu", "hung", "missing", "timeout", "dns", "D", "Z", "compute", "ext4",
    "no space left on device", "0/5 nodes are available: 3 Insufficient nvidia.com/gpu", "dial tcp: i/o timeout",
    'Failed to pull image "harbor.lab/a:1": rpc error: code = NotFound', "{x} {0} %s", "\x1b[31m\n\u202e", "长" * 300,
)  # fmt: skip
TIMES = (NOW, NOW - 1, NOW - 700, NOW - 4000, NOW - 1e5, NOW + 1e5, 0.0, -1.0, 1e18)
AMOUNTS = (0, 1, 2, 8, -1, 64 * 1024**2, 10**12, 2**63)

texts = st.one_of(st.sampled_from(NAMES), st.sampled_from(WORDS), st.text(max_size=300))
floats = st.one_of(st.sampled_from(TIMES), st.sampled_from((0.0, 0.5, 1.0, 1.5, -1.0)), st.floats(0, 1e15))
integers = st.one_of(st.sampled_from(AMOUNTS), st.integers(-(2**40), 2**40))


@cache
def of(fact: Any) -> st.SearchStrategy[Any]:
    """Strategy for facts of a type."""
    return _of(inspect.type_info(fact))


def _of(kind: Any) -> st.SearchStrategy[Any]:
    """Strategy for the values of a msgspec type."""
    plain: dict[Any, st.SearchStrategy[Any]] = {
        inspect.StrType: texts,
        inspect.FloatType: floats,
        inspect.IntType: integers,
        inspect.BoolType: st.booleans(),
        inspect.NoneType: st.none(),
        inspect.AnyType: texts,
    }
    if type(kind) in plain:
        return plain[type(kind)]
    return _made_of_others(kind)


def _made_of_others(kind: Any) -> st.SearchStrategy[Any]:
    if isinstance(kind, inspect.UnionType):
        return st.one_of(*(_of(each) for each in kind.types))
    if isinstance(kind, inspect.StructType):
        return _struct(kind)
    if isinstance(kind, inspect.VarTupleType):
        return st.lists(_of(kind.item_type), max_size=3).map(tuple)
    if isinstance(kind, inspect.TupleType):
        return st.tuples(*(_of(each) for each in kind.item_types))
    if isinstance(kind, inspect.DictType):
        return st.dictionaries(_of(kind.key_type), _of(kind.value_type), max_size=2)
    if isinstance(kind, inspect.EnumType):
        return st.sampled_from(list(kind.cls))
    raise TypeError(f"no strategy for {kind}")


def _struct(kind: inspect.StructType) -> st.SearchStrategy[Any]:
    """Optional fields are mostly omitted: missing values matter as much as odd ones."""
    required = {field.name: _of(field.type) for field in kind.fields if field.required}
    optional = {field.name: _of(field.type) for field in kind.fields if not field.required}
    return st.fixed_dictionaries(required, optional=optional).map(lambda given: kind.cls(**given))


@st.composite
def bent(draw: st.DrawFn, fact: Any) -> Any:
    """A valid fact with one to three of its fields replaced by arbitrary values."""
    fields = {field.name: field for field in inspect.type_info(type(fact)).fields}  # type: ignore[attr-defined]  # of structs
    names = draw(st.lists(st.sampled_from(sorted(fields)), min_size=1, max_size=3, unique=True))
    return structs.replace(fact, **{name: draw(_of(fields[name].type)) for name in names})
