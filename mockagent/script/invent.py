"""Makes up a value that fits a JSON Schema, for calls of tools that only the client knows.

Covers what schemas of tools use: types, `enum`, `const`, `default`, `examples`, bounds, lengths, and the first of
several alternatives. What it does not know it leaves out. The same generator gives the same value.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from typing import Any

_WORDS = ("alpha", "bravo", "delta", "echo", "kilo", "lima", "oscar", "tango")
_FORMATS = {
    "date": "2026-01-15",
    "date-time": "2026-01-15T09:00:00Z",
    "time": "09:00:00Z",
    "email": "dev@example.com",
    "uri": "https://example.com/",
    "uuid": "6f2b1c1e-3d4a-4f5b-8c6d-7e8f9a0b1c2d",
    "ipv4": "192.0.2.1",
    "hostname": "example.com",
}
_DEPTH = 8


def invent(schema: Any, rng: Random, depth: int = 0) -> Any:
    """A value for a schema.

    Args:
        schema: as the client declared it; anything but an object allows everything.
        rng: where the choices come from.
        depth: how deep the value lies in another; beyond a limit nothing optional is made.
    """
    if not isinstance(schema, Mapping):
        return {}
    if "const" in schema:
        return schema["const"]
    if "default" in schema:
        return schema["default"]
    for key in ("enum", "examples"):
        if isinstance(schema.get(key), list) and schema[key]:
            return rng.choice(schema[key])
    for key in ("oneOf", "anyOf", "allOf"):
        if isinstance(schema.get(key), list) and schema[key] and depth < _DEPTH:
            return invent(schema[key][0], rng, depth + 1)
    make = _TYPES.get(_type(schema))
    return make(schema, rng, depth) if make is not None else None


def _type(schema: Mapping[str, Any]) -> str:
    kind = schema.get("type")
    if isinstance(kind, list):
        kind = next((one for one in kind if one != "null"), "null")
    if isinstance(kind, str):
        return kind
    return "array" if "items" in schema and "properties" not in schema else "object"


def _object(schema: Mapping[str, Any], rng: Random, depth: int) -> Any:
    """All properties, the optional ones only where the value does not get too deep."""
    properties = schema.get("properties")
    required = schema.get("required")
    wanted = required if isinstance(required, list) else []
    if not isinstance(properties, Mapping):
        properties = {}
    made = {
        name: invent(inner, rng, depth + 1)
        for name, inner in properties.items()
        if depth < _DEPTH and (name in wanted or depth < 2)
    }
    return made | {name: rng.choice(_WORDS) for name in wanted if name not in made and isinstance(name, str)}


def _array(schema: Mapping[str, Any], rng: Random, depth: int) -> Any:
    least = schema.get("minItems")
    count = least if isinstance(least, int) else 1
    return [invent(schema.get("items"), rng, depth + 1) for _ in range(count)] if depth < _DEPTH else []


def _string(schema: Mapping[str, Any], rng: Random, depth: int) -> Any:
    text = _FORMATS.get(str(schema.get("format"))) or rng.choice(_WORDS)
    least, most = schema.get("minLength"), schema.get("maxLength")
    if isinstance(least, int) and len(text) < least:
        text += "x" * (least - len(text))
    return text[:most] if isinstance(most, int) else text


def _integer(schema: Mapping[str, Any], rng: Random, depth: int) -> Any:
    low, high = _bounds(schema)
    step = schema.get("multipleOf")
    value = rng.randint(int(low), max(int(low), int(high)))
    if isinstance(step, int) and step > 1:
        value = -(-int(low) // step) * step
    return value


def _number(schema: Mapping[str, Any], rng: Random, depth: int) -> Any:
    low, high = _bounds(schema)
    return round(rng.uniform(low, max(low, high)), 2) if high - low > 0.01 else low


def _bounds(schema: Mapping[str, Any]) -> tuple[float, float]:
    low = schema.get("minimum")
    high = schema.get("maximum")
    above, below = schema.get("exclusiveMinimum"), schema.get("exclusiveMaximum")
    if isinstance(above, int | float) and not isinstance(above, bool):
        low = above + 1
    if isinstance(below, int | float) and not isinstance(below, bool):
        high = below - 1
    if not isinstance(low, int | float):
        low = min(1, high) if isinstance(high, int | float) else 1
    if not isinstance(high, int | float):
        high = low + 99
    return low, high


def _boolean(schema: Mapping[str, Any], rng: Random, depth: int) -> Any:
    return rng.random() < 0.5


def _null(schema: Mapping[str, Any], rng: Random, depth: int) -> Any:
    return None


_TYPES: dict[str, Callable[[Mapping[str, Any], Random, int], Any]] = {
    "object": _object,
    "array": _array,
    "string": _string,
    "integer": _integer,
    "number": _number,
    "boolean": _boolean,
    "null": _null,
}
