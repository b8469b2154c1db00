"""The OpenAPI schema: the framework's part, and predictions, which do not pass the framework."""

from __future__ import annotations

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from streamkernel.kinds import PREDICTORS
from streamkernel.service.formats import ARROW, JSON, LIBSVM_TYPE, MEDIA_TYPES, NPY
from streamkernel.service.http_errors import STATUSES
from streamkernel.type_aliases import Fields

_NUMBERS = {"type": "array", "items": {"type": "number"}, "minItems": 1}
_BINARY = {"type": "string", "format": "binary"}
_LABEL = {"anyOf": [{"type": "number"}, {"type": "string"}, {"type": "boolean"}]}
_REFUSED = (400, 401, 403, 404, 406, 408, 413, 415, 421, 422, 500, 503)

_VALUE = {"anyOf": [_LABEL, {"type": "null"}]}
_ROW = {"anyOf": [_NUMBERS, {"type": "object", "additionalProperties": _VALUE, "minProperties": 1}]}
_COLUMNS = {
    "type": "array",
    "items": {"type": "string"},
    "minItems": 1,
    "description": "Columns of the values in a row that is a list; by default, the model's. An object has names.",
}
_ROWS = {
    "title": "Rows",
    "oneOf": [
        {
            "type": "object",
            "properties": {"row": _ROW, "columns": _COLUMNS},
            "required": ["row"],
            "additionalProperties": False,
        },
        {
            "type": "object",
            "properties": {"rows": {"type": "array", "items": _ROW, "minItems": 1}, "columns": _COLUMNS},
            "required": ["rows"],
            "additionalProperties": False,
        },
    ],
}
_PER_ROW = {"anyOf": [_LABEL, {"type": "array", "items": {"anyOf": [_LABEL, _NUMBERS]}}]}
_PREDICTIONS = {
    "title": "Predictions",
    "description": "The values of one row, or lists with the values of each row, in their order.",
    "type": "object",
    "properties": {
        "prediction": _PER_ROW,
        "decision": _PER_ROW,
        "std": _PER_ROW,
        "probabilities": {"type": "array", "items": {"anyOf": [{"type": "number"}, _NUMBERS]}},
        "classes": {"type": "array", "items": _LABEL},
    },
    "required": ["prediction"],
    "additionalProperties": False,
}


def openapi_of(app: FastAPI, *, secured: bool) -> Fields:
    """The whole schema.

    Parameters
    ----------
    secured : whether requests need a token.
    """
    schema = get_openapi(title=app.title, version=app.version, description=app.description, routes=app.routes)
    schemas = schema.setdefault("components", {}).setdefault("schemas", {})
    # Remove the framework's shape of a parameter error: the service sends its own.
    for name in ("HTTPValidationError", "ValidationError"):
        schemas.pop(name, None)
    schemas |= {"Rows": _ROWS, "Predictions": _PREDICTIONS}
    schema["paths"]["/v1/models/{name}/predict"] = {"post": _predict()}
    if secured:
        schema["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        for path, operations in schema["paths"].items():
            for operation in operations.values():
                operation["security"] = [] if path == "/healthz" else [{"token": []}]
    return schema


def _able(what: str) -> str:
    """The kinds of models that can predict something, for people."""
    return ", ".join(kind.name for kind in PREDICTORS.values() if getattr(kind, what))


def _predict() -> Fields:
    def content(json_schema: str) -> Fields:
        return {
            MEDIA_TYPES[JSON]: {"schema": {"$ref": f"#/components/schemas/{json_schema}"}},
            MEDIA_TYPES[NPY]: {"schema": _BINARY},
            MEDIA_TYPES[ARROW]: {"schema": _BINARY},
        }

    def flag(name: str, description: str) -> Fields:
        return {
            "name": name, "in": "query", "required": False, "description": description, "schema": {"type": "boolean"},
        }  # fmt: skip

    refusals = {
        str(status): {
            "description": STATUSES[status][1],
            "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}},
        }
        for status in _REFUSED
    }
    digest = {"description": "digest of the model that predicted", "schema": {"type": "string"}}
    return {
        "summary": "Predict rows",
        "operationId": "predict",
        "description": "Rows are an array (m, p). Columns are in the order of the model or, in Arrow, matched by name. "
        "The answer has the first format that the client accepts, by default that of the body. For a model of sparse "
        "rows a row may be an object of the values that are not 0, and a body libsvm text.",
        "parameters": [
            {
                "name": "name", "in": "path", "required": True,
                "schema": {"type": "string", "pattern": "^[A-Za-z0-9_-][A-Za-z0-9._-]*$", "maxLength": 200},
            },
            flag("std", f"add standard deviations; kinds that can have them: {_able('std')}"),
            flag("probabilities", f"add class probabilities; kinds that can have them: {_able('probabilities')}"),
        ],
        "requestBody": {"required": True, "content": content("Rows") | {LIBSVM_TYPE: {"schema": {"type": "string"}}}},
        "responses": {
            "200": {
                "description": "Predictions, in the order of the rows",
                "headers": {"X-Model-Digest": digest},
                "content": content("Predictions"),
            },
            **refusals,
        },
    }  # fmt: skip
