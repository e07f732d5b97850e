"""Walks the models of the configuration: every setting with its path, type and default."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel, SecretStr
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from monitor.base.units import format_duration, format_ratio, format_size
from monitor.config.cleanup import KINDS
from monitor.config.policies import PolicyConfig
from monitor.config.root import Config
from monitor.config.types import Listen

# The parser of a value determines its notation: 10m, 80%, 50GiB.
READERS = {
    "parse_duration": "duration",
    "parse_ratio": "share",
    "parse_size": "size",
    "parse_path": "path",
    "parse_zone": "zone",
    "parse_networks": "networks",
    "parse_match": "match",
    "parse_threshold": "threshold",
}
PLAIN = {bool: "bool", int: "int", float: "number", str: "text", SecretStr: "secret", Listen: "address"}
NO_VALUE = "none"
# Default factory -> row of kinds.tsv; any other factory is the host name.
FACTORIES = {
    "default_state_dir": "state-dir",
    "local_timezone": "local-zone",
    "own_namespace": "own-namespace",
    "pod_namespace": "pod-namespace",
    "dict": NO_VALUE,
}
REQUIRED = "required"
# One section stands for all identical ones; rules have a page of their own.
LEFT_OUT = ("daemon.rules",)
ALIKE = {"daemon.alerts.rules": "<rule>", "agent.collectors": "<collector>"}


@dataclass(frozen=True)
class Setting:
    """A setting. `kind` consists of keys of kinds.tsv; `default` is YAML, or a key of kinds.tsv."""

    path: str
    kind: tuple[str, ...]
    default: str
    section: type[BaseModel] | None = None
    renamed: bool = False

    @property
    def variable(self) -> str | None:
        """Environment variable; None inside lists and for fields with an alias."""
        if self.renamed or any(sign in self.path for sign in "[<"):
            return None
        return "GPUWARDEN_" + self.path.upper().replace(".", "__")


def settings(model: type[BaseModel] = Config, prefix: str = "") -> Iterator[Setting]:
    """Every setting below a model, sections before their content."""
    for name, field in model.model_fields.items():
        path = f"{prefix}{field.alias or name}"
        inner, sign = section_in(field.annotation)
        yield Setting(
            path, kind_of(field.annotation, field.metadata), default_of(field), inner, field.alias is not None
        )
        if inner is PolicyConfig:
            yield from _policies(path)
        elif inner is not None and path not in LEFT_OUT:
            yield from _alike(inner, path) if path in ALIKE else settings(inner, f"{path}{sign}.")


def _alike(model: type[BaseModel], path: str) -> Iterator[Setting]:
    """Settings of the first of several sections that differ only in defaults."""
    first = next(iter(model.model_fields.values()))
    inner, _ = section_in(first.annotation)
    if inner is not None:
        yield from settings(inner, f"{path}.{ALIKE[path]}.")


def _policies(path: str) -> Iterator[Setting]:
    """Settings common to all policies, then those of each kind."""
    common = set(PolicyConfig.model_fields)
    yield from settings(PolicyConfig, f"{path}[].")
    for kind, model in KINDS.items():
        own = settings(model, f"{path}[kind={kind}].")
        yield from (setting for setting in own if setting.path.split("].")[1].split(".")[0] not in common)


def section_in(annotation: Any) -> tuple[type[BaseModel] | None, str]:
    """The section in a type, and the path suffix that leads into it: `[]` for a list, a name for a mapping."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel) and annotation is not Listen:
        return annotation, ""
    sign = {tuple: "[]", dict: ".<name>"}.get(get_origin(annotation), "")
    for argument in get_args(annotation):
        inner, further = section_in(argument)
        if inner is not None:
            return inner, sign + further
    return None, ""


def kind_of(annotation: Any, metadata: Any = ()) -> tuple[str, ...]:
    """Keys of kinds.tsv for a type; the choices of a Literal follow verbatim."""
    for mark in metadata:
        if (word := READERS.get(getattr(getattr(mark, "func", None), "__name__", ""))) is not None:
            return (word,)
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return kind_of(arguments[0], arguments[1:])
    if origin is Literal:
        return ("choice", *map(str, arguments))
    if origin in (Union, UnionType):
        return kind_of(next(argument for argument in arguments if argument is not NoneType), metadata)
    if origin in (tuple, frozenset):
        return ("list", *kind_of(arguments[0]))
    if origin is dict:
        return ("mapping", *kind_of(arguments[1]))
    return (PLAIN.get(annotation, "section"),)


def default_of(field: FieldInfo) -> str:
    """Default of a field as it is written in the file."""
    if field.is_required():
        return REQUIRED
    if field.default_factory is not None:
        factory = getattr(field.default_factory, "__name__", "")
        return FACTORIES.get(factory, "host")
    if field.default is PydanticUndefined or field.default is None or field.default in ((), frozenset(), ""):
        return NO_VALUE
    return written(field.default, kind_of(field.annotation, field.metadata))


def written(value: Any, kind: tuple[str, ...]) -> str:
    """A value as it is written in the file."""
    if isinstance(value, BaseModel) and not isinstance(value, Listen):
        return NO_VALUE
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (tuple, frozenset)):
        items = sorted(value) if isinstance(value, frozenset) else value
        return f"[{', '.join(written(item, kind[1:]) for item in items)}]"
    shown = {"duration": format_duration, "share": format_ratio, "size": _size}.get(kind[0])
    if shown is not None:
        return shown(value) if value else "0"
    return f"{value:g}" if isinstance(value, float) else str(value)


def _size(value: int) -> str:
    """A size in the largest unit that leaves a whole number: 64MiB, 10MB."""
    for unit, factor in (("GiB", 1024**3), ("GB", 10**9), ("MiB", 1024**2), ("MB", 10**6)):
        if value % factor == 0:
            return f"{value // factor}{unit}"
    return format_size(value)
