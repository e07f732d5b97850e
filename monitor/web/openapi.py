"""The document of the JSON API, made of one table of what there is: GET /v1/openapi.json."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

import monitor
from monitor.web.openapi_table import OPERATIONS, SCHEMA_NAMES, Operation, Parameter, ErrorResponse
from monitor.web.responses import json_response

REFERENCE = "#/components/schemas/{name}"
JSON = "application/json"
PATH = "/v1/openapi.json"


def openapi_routes(routes: Sequence[BaseRoute]) -> list[Route]:
    """Given all other routes, return the one of the document of those among them that are of the API."""

    @functools.cache
    def made() -> dict[str, Any]:
        return document([*served(routes), ("GET", PATH)])

    def openapi(_request: Request) -> Response:
        return json_response(made())

    return [Route(PATH, openapi)]


def served(routes: Iterable[BaseRoute]) -> list[tuple[str, str]]:
    """Given routes, return method and path of those of the API."""
    return [
        (method, route.path)
        for route in routes
        if isinstance(route, Route) and route.path.startswith("/v1/")
        for method in sorted(route.methods or ())
        if method != "HEAD"
    ]


def document(wanted: Iterable[tuple[str, str]]) -> dict[str, Any]:
    """Given methods and paths, return the document of what of them is in the table."""
    chosen = set(wanted)
    operations = [each for each in OPERATIONS if (each.method, each.path) in chosen]
    types = [kind for each in operations for kind in (each.answer, each.body, *each.refusals.values()) if kind]
    schemas, components = _published(msgspec.json.schema_components([*types, ErrorResponse], ref_template=REFERENCE))
    known = {repr(kind): schema for kind, schema in zip([*types, ErrorResponse], schemas, strict=True)}
    paths: dict[str, dict[str, Any]] = {}
    for each in operations:
        paths.setdefault(each.path, {})[each.method.lower()] = _operation(each, known)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "gpuwarden",
            "version": monitor.__version__,
            "description": "What a GPU cluster does, what is wrong with it, and the few things to do about it.",
        },
        "security": [{}, {"token": []}],
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _published(
    schemas: tuple[tuple[dict[str, Any], ...], dict[str, Any]],
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Schemas under their published names, which stay the same when a class is renamed."""
    encoded = msgspec.json.encode(schemas)
    for name, published in SCHEMA_NAMES.items():
        before, after = (f'"{REFERENCE.format(name=each)}"'.encode() for each in (name, published))
        encoded = encoded.replace(before, after).replace(
            f'"title":"{name}"'.encode(), f'"title":"{published}"'.encode()
        )
    parts, components = msgspec.json.decode(encoded)
    return parts, {SCHEMA_NAMES.get(name, name): schema for name, schema in components.items()}


@dataclass(frozen=True)
class _Schemas:
    """The schemas of types."""

    known: dict[str, dict[str, Any]]

    def json(self, kind: object) -> dict[str, Any]:
        return {JSON: {"schema": self.known[repr(kind)]}}


def _operation(operation: Operation, known: dict[str, dict[str, Any]]) -> dict[str, Any]:
    schemas = _Schemas(known)
    content = schemas.json(operation.answer) if operation.answer is not None else {JSON: {"schema": {}}}
    content |= {kind: {"schema": {"type": "string"}} for kind in operation.also}
    responses: dict[str, Any] = {
        str(operation.status.value): {"description": operation.status.phrase, "content": content},
        "default": {"description": "It was refused, or failed.", "content": schemas.json(ErrorResponse)},
    }
    for status, kind in operation.refusals.items():
        responses[str(status.value)] = {"description": HTTPStatus(status).phrase, "content": schemas.json(kind)}
    made: dict[str, Any] = {
        "operationId": operation.name,
        "summary": operation.summary,
        "description": f"Role: {operation.role}.",
        "responses": responses,
    }
    if operation.parameters:
        made["parameters"] = [_parameter(each) for each in operation.parameters]
    if operation.body is not None:
        made["requestBody"] = {"required": operation.body_required, "content": schemas.json(operation.body)}
    return made


def _parameter(parameter: Parameter) -> dict[str, Any]:
    return {
        "name": parameter.name,
        "in": parameter.where,
        "required": parameter.required or parameter.where == "path",
        "schema": dict(parameter.schema),
    }
