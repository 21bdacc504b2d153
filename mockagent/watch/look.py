"""Looking into what a client sent: it sends what it likes, so nothing here trusts the shape of a value."""

from __future__ import annotations

from typing import Any


def at(value: Any, *path: str) -> Any:
    """What stands at the end of a path of member names, or None."""
    for name in path:
        if not isinstance(value, dict):
            return None
        value = value.get(name)
    return value


def items(value: Any) -> list[Any]:
    """A list as it is, anything else as an empty one."""
    return value if isinstance(value, list) else []


def word(value: Any) -> str:
    """A value in a sentence, cut."""
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
