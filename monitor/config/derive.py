"""Sections derived from the settings classes that they populate: a default is written once, in the settings class."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping
from typing import Any, ClassVar, TypeVar, get_type_hints

import msgspec
from pydantic import BaseModel, Field

from monitor.config.types import Section

S = TypeVar("S")


class DerivedSection(Section):
    """A section with the fields, order, types and defaults of a dataclass or Struct: `settings`.

    Fields declared in the body replace those of `settings` in place, others follow. `types` maps the type of a field to
    the type of its setting, `omit` names fields that are not settings.
    """

    settings_class: ClassVar[type]

    def __init_subclass__(
        cls, *, settings: type | None = None, types: Mapping[Any, Any] | None = None, omit: Collection[str] = ()
    ) -> None:
        """Add the fields before pydantic collects them."""
        super().__init_subclass__()
        if settings is None:
            return
        cls.settings_class = settings
        declared, derived, hints = cls.__annotations__, {}, get_type_hints(settings)
        for name, default in _defaults(settings).items():
            if name in declared or not (name in omit or name in cls.model_fields):
                derived[name] = declared.get(name, (types or {}).get(hints[name], hints[name]))
                if name not in vars(cls) and default is not ...:
                    setattr(cls, name, default)
        cls.__annotations__ = derived | declared


def build(settings: type[S], section: BaseModel, **values: Any) -> S:
    """Settings with the values of the section's fields of the same names; `values` take precedence."""
    names = _defaults(settings).keys() & type(section).model_fields.keys()
    return settings(**({name: getattr(section, name) for name in names} | values))


def _defaults(settings: Any) -> dict[str, Any]:
    """Default of each field, in order; `...` if it is required."""
    is_struct = issubclass(settings, msgspec.Struct)
    fields: Any = msgspec.structs.fields(settings) if is_struct else dataclasses.fields(settings)
    return {field.name: _default(field, msgspec.NODEFAULT if is_struct else dataclasses.MISSING) for field in fields}


def _default(field: Any, missing: object) -> Any:
    if field.default is not missing:
        return field.default
    return ... if field.default_factory is missing else Field(default_factory=field.default_factory)
