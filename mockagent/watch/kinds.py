"""Finding what is registered for a kind of message, and all places in it that a pointer with `*` names.

A burst of messages must cost nothing when nobody watches its kind, so a look-up is one dictionary access. Globs and
pointers are those of the scenario format (`script.match`, `script.pointer`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, Generic, TypeVar

from mockagent.script.match import glob
from mockagent.script.pointer import parse

T = TypeVar("T")

#: Kinds are the client's words in part (methods, paths): the memory of look-ups has to end somewhere.
_REMEMBERED: Final = 2000


class KindTable(Generic[T]):
    """Values registered under kinds and globs over kinds, found in the order in which they were registered."""

    def __init__(self) -> None:
        self._rows: list[tuple[str, T]] = []
        self._found: dict[str, tuple[T, ...]] = {}

    def add(self, pattern: str, value: T) -> None:
        """Registers a value."""
        self._rows.append((pattern, value))
        self._found.clear()

    def find(self, kind: str) -> tuple[T, ...]:
        """The values whose patterns match the kind."""
        found = self._found.get(kind)
        if found is None:
            found = tuple(value for pattern, value in self._rows if glob(pattern, kind))
            if len(self._found) >= _REMEMBERED:
                self._found.clear()
            self._found[kind] = found
        return found


def places(value: Any, pointer: str) -> Iterator[tuple[Any, Any]]:
    """The places that a pointer names, as container and key. Its token `*` stands for every member there is."""
    *path, last = parse(pointer) or [""]
    level = [value]
    for token in path:
        level = [container[key] for container in level for key in _keys(container, token)]
    for container in level:
        for key in _keys(container, last):
            yield container, key


def _keys(container: Any, token: str) -> list[Any]:
    if isinstance(container, dict):
        return list(container) if token == "*" else [token] if token in container else []
    if isinstance(container, list):
        if token == "*":
            return list(range(len(container)))
        return [int(token)] if token.isdecimal() and int(token) < len(container) else []
    return []
