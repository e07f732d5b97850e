"""GET /v1/openapi.json, generated from the table of operations."""

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
from monitor.web.openapi_table import OPERATIONS, SCHEMA_NAMES, ErrorResponse, Operation, Parameter
from monitor.web.responses import json_response

REFERENCE = "#/components/schemas/{name}"
JSON = "application/json"
PATH = "/v1/openapi.json"


def openapi_routes(routes: Sequence[BaseRoute]) -> list[Route]:
    """Route of the document, which describes those of the given routes that belong to the API."""

    @functools.cache
    def cached_document() -> dict[str, Any]:
        return document([*served(routes), ("GET", PATH)])

    def openapi(_request: Request) -> Response:
        return json_response(cached_document())

    return [Route(PATH, openapi)]


def served(routes: Iterable[BaseRoute]) -> list[tuple[str, str]]:
    """Method and path of the routes of the API."""
    return [
        (method, route.path)
        for route in routes
        if isinstance(route, Route) and route.path.startswith("/v1/")
        for method in sorted(route.methods or ())
        if method != "HEAD"
    ]


def document(routes: Iterable[tuple[str, str]]) -> dict[str, Any]:
    """The OpenAPI document of the given methods and paths."""
    selected = set(routes)
    operations = [operation for operation in OPERATIONS if (operation.method, operation.path) in selected]
    types = [
        kind
        for operation in operations
        for kind in (operation.response, operation.body, *operation.errors.values())
        if kind
    ]
    schemas, components = _published(msgspec.json.schema_components([*types, ErrorResponse], ref_template=REFERENCE))
    known = {repr(kind): schema for kind, schema in zip([*types, ErrorResponse], schemas, strict=True)}
    paths: dict[str, dict[str, Any]] = {}
    for operation in operations:
        paths.setdefault(operation.path, {})[operation.method.lower()] = _operation(operation, known)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "gpuwarden",
            "version": monitor.__version__,
            "description": "State, findings, alerts and cleanup of a GPU cluster, and actions on it.",
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
    """Schemas under their published names, which are independent of class names."""
    encoded = msgspec.json.encode(schemas)
    for name, published in SCHEMA_NAMES.items():
        before, after = (f'"{REFERENCE.format(name=schema)}"'.encode() for schema in (name, published))
        encoded = encoded.replace(before, after).replace(
            f'"title":"{name}"'.encode(), f'"title":"{published}"'.encode()
        )
    parts, components = msgspec.json.decode(encoded)
    return parts, {SCHEMA_NAMES.get(name, name): schema for name, schema in components.items()}


@dataclass(frozen=True)
class _Schemas:
    """Schemas by type."""

    known: dict[str, dict[str, Any]]

    def json(self, kind: object) -> dict[str, Any]:
        return {JSON: {"schema": self.known[repr(kind)]}}


def _operation(operation: Operation, known: dict[str, dict[str, Any]]) -> dict[str, Any]:
    schemas = _Schemas(known)
    content = schemas.json(operation.response) if operation.response is not None else {JSON: {"schema": {}}}
    content |= {kind: {"schema": {"type": "string"}} for kind in operation.also}
    responses: dict[str, Any] = {
        str(operation.status.value): {"description": operation.status.phrase, "content": content},
        "default": {"description": "It was refused, or failed.", "content": schemas.json(ErrorResponse)},
    }
    for status, kind in operation.errors.items():
        responses[str(status.value)] = {"description": HTTPStatus(status).phrase, "content": schemas.json(kind)}
    description: dict[str, Any] = {
        "operationId": operation.name,
        "summary": operation.summary,
        "description": f"Role: {operation.role}.",
        "responses": responses,
    }
    if operation.parameters:
        description["parameters"] = [_parameter(parameter) for parameter in operation.parameters]
    if operation.body is not None:
        description["requestBody"] = {"required": operation.body_required, "content": schemas.json(operation.body)}
    return description


def _parameter(parameter: Parameter) -> dict[str, Any]:
    return {
        "name": parameter.name,
        "in": parameter.where,
        "required": parameter.required or parameter.where == "path",
        "schema": dict(parameter.schema),
    }
