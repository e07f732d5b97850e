"""Translates validation errors of pydantic for the author of the configuration. Secret values are never quoted."""

from __future__ import annotations

from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel, SecretStr
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from monitor.base.text import unknown
from monitor.base.units import quoted

Path = tuple[str | int, ...]

_NOT_A_LIST = "{value} is not a list; write each entry on a line of its own that begins with '- '"
_NOT_A_MAPPING = "{value} where a mapping belongs; write 'key: value' lines below it"
# Error type -> text. {value} is the given value; the other names are in the error's context.
_TEXTS = {
    "bool_parsing": "{value} is not true or false",
    "bool_type": "{value} is not true or false",
    "int_parsing": "{value} is not a whole number",
    "int_type": "{value} is not a whole number",
    "int_from_float": "{value} is not a whole number",
    "float_parsing": "{value} is not a number",
    "float_type": "{value} is not a number",
    "string_type": "{value} is not text; put it in quotes",
    "string_too_short": "must not be empty",
    "tuple_type": _NOT_A_LIST,
    "list_type": _NOT_A_LIST,
    "dict_type": _NOT_A_MAPPING,
    "model_type": _NOT_A_MAPPING,
    "literal_error": "{value} is not one of {expected}",
    "greater_than": "{value} is too small; it has to be more than {gt}",
    "greater_than_equal": "{value} is too small; the least is {ge}",
    "less_than": "{value} is too large; it has to be less than {lt}",
    "less_than_equal": "{value} is too large; the most is {le}",
    "missing": "is required and not given",
    "value_error": "{error}",
}


def explain(error: ErrorDetails, root: type[BaseModel]) -> str:
    """Text of a validation error in `root`: the problem and, where possible, what to write instead."""
    path = error["loc"]
    if error["type"] == "extra_forbidden":
        field = field_at(root, path[:-1])
        model = _model_in(field.annotation if field else root)
        removed = getattr(model, "removed_settings", {}).get(path[-1])
        return removed or unknown("key", str(path[-1]), model.model_fields if model else ())
    text = _TEXTS.get(error["type"])
    if text is None:
        return error["msg"]
    value = "the value" if is_secret(root, path) else quoted(error["input"])
    return text.format(value=value, **error.get("ctx", {}))


def field_at(root: type[BaseModel], path: Path) -> FieldInfo | None:
    """Field of a setting, or None if there is no such setting."""
    model: type[BaseModel] | None = root
    field: FieldInfo | None = None
    for key in path:
        if isinstance(key, int):  # the field of a list also describes its items
            continue
        field = model.model_fields.get(key) if model else None
        if field is None:
            return None
        model = _model_in(field.annotation)
    return field


def is_secret(root: type[BaseModel], path: Path) -> bool:
    """Whether a path is a secret, or below one."""
    fields = (field_at(root, path[: end + 1]) for end in range(len(path)))
    return any(field is not None and _mentions(field.annotation, SecretStr) for field in fields)


def is_text(root: type[BaseModel], path: Path) -> bool:
    """Whether the value of a variable for this setting is plain text rather than YAML."""
    field = field_at(root, path)
    return field is not None and _options(field.annotation) <= {str, SecretStr, NoneType}


def _options(annotation: Any) -> set[Any]:
    """Alternatives of a union: str and NoneType for `Annotated[str, ...] | None`."""
    if get_origin(annotation) is Annotated:
        return _options(get_args(annotation)[0])
    if get_origin(annotation) in (Union, UnionType):
        return {option for argument in get_args(annotation) for option in _options(argument)}
    return {annotation}


def _model_in(annotation: Any) -> type[BaseModel] | None:
    """Section in a type, also as the item of a list or in a union."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    inner = (_model_in(argument) for argument in get_args(annotation))
    return next((model for model in inner if model), None)


def _mentions(annotation: Any, wanted: type) -> bool:
    return annotation is wanted or any(_mentions(argument, wanted) for argument in get_args(annotation))
