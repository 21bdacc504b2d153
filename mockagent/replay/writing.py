"""Writes plain values as YAML, in the form in which scenarios are written by hand: short things in one line.

Texts are quoted wherever a reader of YAML, of either version, could take them for something else.
"""

from __future__ import annotations

import json
import re
from typing import Any

WIDTH = 112
"""Characters up to which something is written in one line."""

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_./$-]*(?: [A-Za-z0-9_./$-]+)*|[0-9]+ms")
_WORDS = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n", "nan", "inf"})
_UNPRINTABLE = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff\ud800-\udfff]")


def yaml_text(scenario: dict[str, Any]) -> str:
    """The text of a scenario, a blank line before each of its larger parts."""
    lines: list[str] = []
    for key, value in scenario.items():
        large = isinstance(value, dict | list) and key != "tags"
        lines += [""] * large + _member(key, value, 0, flow=isinstance(value, dict) or not large)
    return "\n".join(lines) + "\n"


def _block(value: Any, indent: int) -> list[str]:
    """A mapping or a list over several lines."""
    if isinstance(value, dict):
        return [line for key, part in value.items() for line in _member(key, part, indent)]
    return [line for part in value for line in _entry(part, indent)]


def _entry(value: Any, indent: int) -> list[str]:
    """One entry of a list."""
    pad, flow = " " * indent, _flow(value)
    whole = not isinstance(value, dict | list) or not value
    if whole or (_fits(flow, indent + 2) and not (isinstance(value, dict) and len(value) == 1)):
        return [f"{pad}- {flow}"]
    first, *rest = _block(value, indent + 2)
    return [f"{pad}- {first.lstrip(' ')}", *rest]


def _member(key: str, value: Any, indent: int, *, flow: bool = True) -> list[str]:
    pad, name, short = " " * indent, _flow(key), _flow(value)
    if not isinstance(value, dict | list) or not value or (flow and _fits(short, indent + len(name) + 2)):
        return [f"{pad}{name}: {short}"]
    return [f"{pad}{name}:", *_block(value, indent + 2)]


def _fits(text: str, indent: int) -> bool:
    return indent + len(text) <= WIDTH


def _flow(value: Any) -> str:
    """A value in one line."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_flow(key)}: {_flow(part)}" for key, part in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_flow, value)) + "]"
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, float):
        return _number(value)
    return json.dumps(value)


def _number(value: float) -> str:
    """As YAML's core schema has it: a power needs no point there, but one of JSON has no `inf`."""
    return {float("inf"): ".inf", float("-inf"): "-.inf"}.get(value, ".nan" if value != value else json.dumps(value))


def _text(value: str) -> str:
    if _PLAIN.fullmatch(value) and value.lower() not in _WORDS:
        return value
    return _UNPRINTABLE.sub(_code, json.dumps(value, ensure_ascii=False))


def _code(match: re.Match[str]) -> str:
    return f"\\u{ord(match.group()):04X}"
