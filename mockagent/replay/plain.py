"""The pieces of scenarios that every replay is made of, as plain values: pauses, counts, faults at what passes.

Knows the scenario format and no protocol.
"""

from __future__ import annotations

from typing import Any, Final

Plain = dict[str, Any]

GAP: Final = 0.005
"""Seconds from which a pause is part of what happened."""

ONCE: Final[Plain] = {"times": 1, "per": "process"}
"""The condition of a turn that plays once."""

LIFE: Final = ("stderr", "disconnect", "exit", "stall", "ignore")
"""Effects that leave no trace in the messages."""


def whole_scenario(name: str, **parts: Any) -> Plain:
    """A scenario that plays a recording; parts that are empty are left out."""
    whole: Plain = {
        "name": name,
        "summary": "Plays a recorded conversation again.",
        "legality": "violation",  # nothing that was said is held back, whatever the client can do
        "tags": ["replay"],
        **parts,
    }
    return {key: value for key, value in whole.items() if value not in ([], {})}


class Kinds:
    """Counts the messages that pass the faults, to say which one something happens to."""

    def __init__(self) -> None:
        self.faults: list[Plain] = []
        self._counts: dict[str, int] = {}

    def pass_(self, kind: str, effects: Plain) -> None:
        """A message passes; `effects` happen to it."""
        number = self._counts[kind] = self._counts.get(kind, 0) + 1
        if effects:
            self.faults.append({"at": kind, "when": nth(number), **effects})


def nth(number: int) -> Plain:
    """The condition of what happens to one message."""
    return {"nth": number, "per": "process"}


def after(gap: float, step: Plain) -> Plain:
    """A step behind a pause of so many seconds, if it is long enough to be one."""
    return step if gap < GAP else {"after": span(gap), **step}


def span(seconds: float) -> str:
    """A duration."""
    return f"{round(seconds * 1000)}ms"


def stop(told: Any) -> Plain:
    """The step that ends a turn as the end of a recorded one tells."""
    reason = told.get("stopReason") if isinstance(told, dict) else None
    return {"stop": reason if isinstance(reason, str) and reason else "end_turn"}


def picked(does: Plain, names: tuple[str, ...]) -> Plain:
    """Some of the effects of a fault."""
    return {name: does[name] for name in names if name in does}


def effects_of(wire: Plain) -> Plain:
    """Effects as one fault can have them: what is dropped has no bytes that anything could happen to."""
    if "drop" not in wire:
        return wire
    return {name: value for name, value in wire.items() if name == "drop" or name in LIFE}
