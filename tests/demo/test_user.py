"""The demo's made-up user: forms filled in with values of the right type."""

from __future__ import annotations

from typing import Any

import jsonschema
import pytest

from mockagent.demo.user import filled

SCHEMAS: list[dict[str, Any]] = [
    {"type": "string"},
    {"type": "string", "enum": ["a", "b"]},
    {"type": "string", "oneOf": [{"const": "x", "title": "X"}]},
    {"type": "integer", "minimum": 5},
    {"type": "number"},
    {"type": "boolean"},
    {"type": "boolean", "default": False},
    {"type": "array", "items": {"type": "string", "enum": ["p", "q"]}},
    {"type": "array", "items": {"anyOf": [{"const": "r", "title": "R"}]}},
]


@pytest.mark.parametrize("field", SCHEMAS, ids=str)
def test_a_form_is_filled_in_as_its_schema_wants_it(field: dict[str, Any]) -> None:
    schema = {"type": "object", "properties": {"field": field}, "required": ["field"]}
    jsonschema.validate(filled(schema), schema)


@pytest.mark.parametrize("schema", [None, 7, {}, {"properties": None}, {"properties": {"a": 3}}])
def test_a_schema_that_is_none_gives_an_empty_form(schema: Any) -> None:
    assert filled(schema) == {}
