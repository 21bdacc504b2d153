"""The official ACP v1 schema as a judge of single messages.

The schema comes with the npm package `@agentclientprotocol/sdk`, which `npm install --prefix tests/interop` installs.
What a message means beside the others is `tests.transcript`'s business; nothing here knows mockagent.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from functools import cache, cached_property
from pathlib import Path
from typing import Any, NoReturn

import pytest
from jsonschema import Draft202012Validator

INTEROP = Path(__file__).parent / "interop"
PACKAGES = INTEROP / "node_modules"
SCHEMA = PACKAGES / "@agentclientprotocol/sdk/schema/v1/schema.json"

REQUIRE_NODE = "MOCKAGENT_REQUIRE_NODE"
"""With this variable set to 1 a missing Node, or a missing package, fails a test in place of skipping it."""

FREE = frozenset({"_meta", "rawInput", "rawOutput", "data", "content", "requestedSchema", "env"})
"""Members whose own members the schema leaves open (lists of blocks under `content` are looked at all the same)."""


def missing(what: str) -> NoReturn:
    """Something of npm is not here: skips the test, or fails it where it has to run."""
    reason = f"{what}; `npm install --prefix tests/interop` with Node 22.13 or newer brings it"
    if os.environ.get(REQUIRE_NODE) == "1":
        pytest.fail(reason)
    pytest.skip(reason)


class Official:
    """Validates what an agent sends against the schema.

    Args:
        schema: the official schema, decoded.
    """

    def __init__(self, schema: dict[str, Any]) -> None:
        self._defs: dict[str, Any] = schema["$defs"]
        self._validators: dict[str, Draft202012Validator] = {}
        self._constants = frozenset(_constants_in(schema))
        self._good: set[tuple[str, str]] = set()

    @cached_property
    def names(self) -> dict[tuple[str, str], str]:
        """Which definition a method's request, notification or reply has: `("session/new", "Response")` → its name."""
        found = {}
        for name, definition in self._defs.items():
            kind = next((kind for kind in ("Request", "Response", "Notification") if name.endswith(kind)), None)
            if "x-method" in definition and kind is not None:
                found[definition["x-method"], kind] = name
        return found

    @cached_property
    def _members(self) -> frozenset[str]:
        """Every member that the schema names anywhere."""
        return frozenset({"jsonrpc", "id", "method", "params", "result", "error", *_property_names(self._defs)})

    def problems(self, name: str, value: Any) -> list[str]:
        """What is wrong with a value that should be what a definition says."""
        shape = (name, json.dumps(self._shape(value)))
        if shape in self._good:
            return []
        if name not in self._validators:
            self._validators[name] = Draft202012Validator({"$ref": f"#/$defs/{name}", "$defs": self._defs})
        errors = self._validators[name].iter_errors(value)
        found = [f"{name}{error.json_path[1:]}: {error.message[:300]}" for error in errors]
        if not found:
            self._good.add(shape)
        return found

    def _shape(self, value: Any) -> Any:
        """A value without what no rule of the schema looks at, so that ten thousand chunks are judged once.

        Of a string it asks only which of its constants that is, or that it is not empty.
        """
        if isinstance(value, dict):
            return {member: self._shape(inner) for member, inner in value.items()}
        if isinstance(value, list):
            return [self._shape(inner) for inner in value]
        return " " if isinstance(value, str) and value and value not in self._constants else value

    def reply_problems(self, method: str, message: dict[str, Any]) -> list[str]:
        """What is wrong with a reply to a request of the client."""
        if set(message) - {"_meta"} not in ({"jsonrpc", "id", "result"}, {"jsonrpc", "id", "error"}):
            return [f"a reply has an id, and a result or an error: {sorted(message)}"]
        wrong = self.problems("RequestId", message["id"])
        if "error" in message:
            return wrong + self.problems("Error", message["error"])
        if (name := self.names.get((method, "Response"))) is None:
            return [*wrong, f"there is no such method: {method}"]
        return wrong + self.problems(name, message["result"]) + self._unknown(message["result"])

    def call_problems(self, message: dict[str, Any]) -> list[str]:
        """What is wrong with a request or a notification to the client."""
        kind = "Request" if "id" in message else "Notification"
        unknown = set(message) - {"jsonrpc", "id", "method", "params"}
        wrong = [f"unknown members of the message: {sorted(unknown)}"] if unknown else []
        if kind == "Request":
            wrong += self.problems("RequestId", message["id"])
        method = message["method"]
        if (name := self.names.get((method, kind))) is None:
            return wrong if method.startswith("_") else [*wrong, f"clients know no {kind.lower()} {method}"]
        if self._defs[name]["x-side"] == "agent":
            return [*wrong, f"{method} is not for clients"]
        return wrong + self.problems(name, message.get("params")) + self._unknown(message.get("params"))

    def _unknown(self, value: Any) -> list[str]:
        """Members that the schema names nowhere: it lets them pass, but they are slips of the pen."""
        return [f"the schema knows no member {name!r}" for name in _names_in(value) if name not in self._members]


def _constants_in(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if isinstance(value.get("const"), str):
            yield value["const"]
        if isinstance(value.get("enum"), list):
            yield from (one for one in value["enum"] if isinstance(one, str))
        for member in value.values():
            yield from _constants_in(member)
    elif isinstance(value, list):
        for member in value:
            yield from _constants_in(member)


def _property_names(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if isinstance(properties := value.get("properties"), dict):
            yield from properties
        for member in value.values():
            yield from _property_names(member)
    elif isinstance(value, list):
        for member in value:
            yield from _property_names(member)


def _names_in(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for name, member in value.items():
            yield name
            if name not in FREE or (name in ("content", "env") and isinstance(member, list)):
                yield from _names_in(member)
    elif isinstance(value, list):
        for member in value:
            yield from _names_in(member)


@cache
def _load() -> Official:
    return Official(json.loads(SCHEMA.read_text(encoding="utf-8")))


def official() -> Official:
    """The judge; without the npm package the calling test is skipped (see `missing`)."""
    if not SCHEMA.exists():
        missing("the official schema is not here")
    return _load()
