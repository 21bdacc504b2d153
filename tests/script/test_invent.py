from __future__ import annotations

from random import Random

import jsonschema
import pytest

from mockagent.script.invent import invent

SCHEMAS = [
    {"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer"}}, "required": ["city"]},
    {"type": "object", "required": ["unknown"]},
    {"properties": {"a": {"enum": [1, "two"]}, "b": {"const": None}, "c": {"type": ["null", "boolean"]}}},
    {"type": "integer", "minimum": 7, "maximum": 7},
    {"type": "integer", "exclusiveMinimum": 3, "multipleOf": 5},
    {"type": "integer", "maximum": -4},
    {"type": "number", "minimum": 0.25, "maximum": 0.75},
    {"type": "string", "minLength": 9},
    {"type": "string", "maxLength": 2},
    {"type": "string", "format": "date-time"},
    {"type": "array", "items": {"type": "string"}, "minItems": 3},
    {"items": {"anyOf": [{"type": "boolean"}, {"type": "null"}]}},
    {"oneOf": [{"type": "object", "properties": {"x": {"type": "number"}}}, {"type": "string"}]},
    {"type": "null"},
    {},
]


@pytest.mark.parametrize("schema", SCHEMAS)
@pytest.mark.parametrize("seed", range(5))
def test_what_is_made_up_fits_the_schema(schema, seed):
    jsonschema.Draft202012Validator(schema).validate(invent(schema, Random(seed)))


@pytest.mark.parametrize("schema", SCHEMAS)
def test_the_same_chances_give_the_same_value(schema):
    assert invent(schema, Random(3)) == invent(schema, Random(3))


def test_examples_and_defaults_come_first():
    assert invent({"type": "string", "default": "d"}, Random(1)) == "d"
    assert invent({"type": "string", "examples": ["e"]}, Random(1)) == "e"


@pytest.mark.parametrize("schema", [None, 5, "x", True, {"type": 5}, {"properties": []}, {"enum": []}, {"items": 3}])
def test_a_schema_that_is_none_does_no_harm(schema):
    invent(schema, Random(1))


def test_a_schema_without_end_ends():
    schema: dict = {"type": "object", "required": ["child"]}
    schema["properties"] = {"child": schema}
    invent(schema, Random(1))
