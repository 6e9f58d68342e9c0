"""A tool's schema as pi rewrites it for models that are held to it (pi-ai's `makeStrictJsonSchema`)."""

from __future__ import annotations

from typing import Any, Final

from ctxctl.formats.build import Json

_NEVER: Final = frozenset(
    {
        "$ref",
        "$defs",
        "definitions",
        "allOf",
        "oneOf",
        "patternProperties",
        "dependentSchemas",
        "dependencies",
        "unevaluatedProperties",
        "propertyNames",
        "contains",
        "prefixItems",
        "not",
        "if",
        "then",
        "else",
    }
)
"""Keys that such a schema cannot have."""
_DEEPEST: Final = 100


class _UnfitError(Exception):
    """A schema that stays as it is."""


def strict_schema(schema: Any) -> Json | None:
    """The schema with every property required, those that were not as `or null`; None: it stays as it is."""
    if not isinstance(schema, dict) or schema.get("type") != "object":
        return None
    try:
        return _node(schema, 0)
    except _UnfitError:
        return None


def _node(schema: Any, depth: int) -> Json:
    if not isinstance(schema, dict) or not _NEVER.isdisjoint(schema) or depth > _DEEPEST:
        raise _UnfitError
    made = dict(schema)
    if "anyOf" in made:
        variants = made["anyOf"]
        if not isinstance(variants, list) or not variants or any(_is_structured(one) for one in variants):
            raise _UnfitError
        made["anyOf"] = [_node(one, depth + 1) for one in variants]
    if "items" in made:
        made["items"] = _node(made["items"], depth + 1)
    if made.get("type") == "object":
        return _object(made, depth)
    if "properties" in made:
        raise _UnfitError
    return made


def _object(made: Json, depth: int) -> Json:
    properties, required = made.get("properties", {}), made.get("required", [])
    if made.get("additionalProperties", False) is not False or not isinstance(properties, dict):
        raise _UnfitError
    if not isinstance(required, list) or any(name not in properties for name in required):
        raise _UnfitError
    found = {}
    for name, one in properties.items():
        inner = _node(one, depth + 1)
        found[name] = inner if name in required or _allows_null(inner, depth) else _or_null(inner)
    return {**made, "properties": found, "required": list(properties), "additionalProperties": False}


def _or_null(schema: Json) -> Json:
    return {"anyOf": [schema, {"type": "null"}]}


def _is_structured(schema: Any) -> bool:
    if not isinstance(schema, dict):
        return False
    kinds = schema.get("type")
    kinds = kinds if isinstance(kinds, list) else [kinds]
    return "object" in kinds or "array" in kinds or "properties" in schema or "items" in schema


def _allows_null(schema: Any, depth: int) -> bool:
    if not isinstance(schema, dict) or depth > _DEEPEST:
        return False
    kinds = schema.get("type")
    if kinds == "null" or (isinstance(kinds, list) and "null" in kinds):
        return True
    values = schema.get("enum")
    if ("const" in schema and schema["const"] is None) or (isinstance(values, list) and None in values):
        return True
    variants = schema.get("anyOf")
    return isinstance(variants, list) and any(_allows_null(one, depth + 1) for one in variants)
