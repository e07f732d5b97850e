"""What the validation library reports -> plain words for the person who wrote the configuration.

A value is quoted so that it is found again, unless the setting is a secret: then no message ever holds it.
"""

from __future__ import annotations

from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel, SecretStr
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from monitor.base.text import unknown
from monitor.base.units import quoted

Path = tuple[str | int, ...]

# Error type -> words; {value} is what was given, the rest is what the library knows about the limit.
_WORDS = {
    "bool_parsing": "{value} is not true or false",
    "bool_type": "{value} is not true or false",
    "int_parsing": "{value} is not a whole number",
    "int_type": "{value} is not a whole number",
    "int_from_float": "{value} is not a whole number",
    "float_parsing": "{value} is not a number",
    "float_type": "{value} is not a number",
    "string_type": "{value} is not text; put it in quotes",
    "string_too_short": "must not be empty",
    "tuple_type": "{value} is not a list; write each entry on a line of its own that begins with '- '",
    "list_type": "{value} is not a list; write each entry on a line of its own that begins with '- '",
    "dict_type": "{value} where a mapping belongs; write 'key: value' lines below it",
    "model_type": "{value} where a mapping belongs; write 'key: value' lines below it",
    "literal_error": "{value} is not one of {expected}",
    "greater_than": "{value} is too small; it has to be more than {gt}",
    "greater_than_equal": "{value} is too small; the least is {ge}",
    "less_than": "{value} is too large; it has to be less than {lt}",
    "less_than_equal": "{value} is too large; the most is {le}",
    "missing": "is required and not given",
    "value_error": "{error}",
}


def explain(error: ErrorDetails, root: type[BaseModel]) -> str:
    """Given an error of the validation of `root`, return what is wrong and, where it can be told, what to write."""
    path = error["loc"]
    if error["type"] == "extra_forbidden":
        model = model_at(root, path[:-1])
        return unknown("key", str(path[-1]), model.model_fields if model else ())
    words = _WORDS.get(error["type"])
    if words is None:
        return error["msg"]
    value = "the value" if is_secret(root, path) else quoted(error["input"])
    return words.format(value=value, **error.get("ctx", {}))


def field_at(root: type[BaseModel], path: Path) -> FieldInfo | None:
    """Given the path of a setting, return its field, or None if there is no such setting."""
    model: type[BaseModel] | None = root
    found: FieldInfo | None = None
    for key in path:
        if isinstance(key, int):  # an item of a list is described by the list's own field
            continue
        found = model.model_fields.get(key) if model else None
        if found is None:
            return None
        model = _model_in(found.annotation)
    return found


def model_at(root: type[BaseModel], path: Path) -> type[BaseModel] | None:
    """Given the path of a section, return its model, or None if there is no such section."""
    if not path:
        return root
    found = field_at(root, path)
    return _model_in(found.annotation) if found else None


def is_secret(root: type[BaseModel], path: Path) -> bool:
    """Return whether this path is a secret, or lies below one."""
    fields = (field_at(root, path[: end + 1]) for end in range(len(path)))
    return any(found is not None and _mentions(found.annotation, SecretStr) for found in fields)


def is_text(root: type[BaseModel], path: Path) -> bool:
    """Return whether this setting takes text as it stands."""
    found = field_at(root, path)
    return found is not None and _options(found.annotation) <= {str, SecretStr, NoneType}


def _options(annotation: Any) -> set[Any]:
    """Return the types that a value may have: of `Annotated[str, ...] | None` both str and None's."""
    if get_origin(annotation) is Annotated:
        return _options(get_args(annotation)[0])
    if get_origin(annotation) in (Union, UnionType):
        return {option for argument in get_args(annotation) for option in _options(argument)}
    return {annotation}


def _model_in(annotation: Any) -> type[BaseModel] | None:
    """Return the section that a type is, or that it is a list or an option of."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    inner = (_model_in(argument) for argument in get_args(annotation))
    return next((model for model in inner if model), None)


def _mentions(annotation: Any, wanted: type) -> bool:
    return annotation is wanted or any(_mentions(argument, wanted) for argument in get_args(annotation))
