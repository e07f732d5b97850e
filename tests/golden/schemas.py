"""JSON schemas without class names: a definition is named after the first path that references it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

DATA = frozenset({"default", "enum", "const", "examples", "required"})  # values, not schemas
STEPS = frozenset(
    {
        "properties", "anyOf", "oneOf", "allOf", "items", "prefixItems", "additionalProperties", "schema", "content",
        "application/json", "paths", "responses", "discriminator", "mapping",
    }
)  # fmt: skip


def without_class_names(document: Mapping[str, Any], prefix: str = "#/$defs/") -> tuple[dict[str, Any], dict[str, str]]:
    """The document with renamed definitions and without titles, and the old name of each definition.

    Definitions are ordered by first reference, so that the order of class names does not matter.
    """
    *parents, last = prefix.removeprefix("#/").rstrip("/").split("/")
    holder: Any = document
    for parent in parents:
        holder = holder[parent]
    definitions = holder.get(last, {})
    renamer = _Renamer(definitions, prefix)
    bare = _without(document, [*parents, last])
    made: dict[str, Any] = renamer.walk(bare, ())
    target: Any = made
    for parent in parents:
        target = target[parent]
    target[last] = renamer.reached()
    return made, {label: name for name, label in renamer.labels.items()}


def _without(document: Mapping[str, Any], path: list[str]) -> dict[str, Any]:
    """A copy without the value at a path."""
    first, *rest = path
    if not rest:
        return {key: value for key, value in document.items() if key != first}
    return {key: _without(value, rest) if key == first else value for key, value in document.items()}


class _Renamer:
    """Walks a document and names each definition at its first reference."""

    def __init__(self, definitions: Mapping[str, Any], prefix: str) -> None:
        self._definitions = definitions
        self._prefix = prefix
        self._done = 0
        self.labels: dict[str, str] = {}

    def reached(self) -> dict[str, Any]:
        """Referenced definitions, transitively."""
        made: dict[str, Any] = {}
        while self._done < len(self.labels):
            name, label = list(self.labels.items())[self._done]
            self._done += 1
            made[label] = self.walk(self._definitions[name], (label,))
        return made

    def walk(self, node: Any, path: tuple[str, ...], names: bool = False) -> Any:
        """A copy of a node with new names. In a map of properties (`names`) no key is a keyword."""
        if isinstance(node, list):
            return [self.walk(each, path) for each in node]
        if isinstance(node, str) and node.startswith(self._prefix):
            return self._prefix + self._label(node.removeprefix(self._prefix), path)
        if not isinstance(node, dict):
            return node
        made: dict[str, Any] = {}
        for key, value in node.items():
            if not names and key == "title" and isinstance(value, str) and path[-1:] != ("info",):
                continue
            if not names and key in DATA:
                made[key] = value
                continue
            further = path if key in STEPS and not names else (*path, key)
            made[key] = self.walk(value, path if key == "$ref" else further, not names and key == "properties")
        return made

    def _label(self, name: str, path: tuple[str, ...]) -> str:
        if name not in self.labels:
            wanted = label = ".".join(path) or "root"
            taken, number = set(self.labels.values()), 1
            while label in taken:
                number += 1
                label = f"{wanted}~{number}"
            self.labels[name] = label
        return self.labels[name]
