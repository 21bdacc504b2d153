"""Makes every wait of a scenario longer or shorter by one factor, for machines slower than the one it was written on.

Pure: a scenario goes in, another comes out. What it must not know is how a wait is played. Times that say when
something happened (`updated_at`, the clock's start, the span of made-up sessions) are no waits and stay as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import msgspec

from mockagent.scenario import model

Change = Callable[[Any, float], Any]
S = TypeVar("S", bound=msgspec.Struct)


def stretched(scenario: model.Scenario, factor: float) -> model.Scenario:
    """The same scenario with all its waits multiplied, and all its rates divided.

    Args:
        scenario: as loaded.
        factor: 2 doubles the waits, 0 does away with them; 1 gives back the scenario itself.

    Raises:
        ValueError: the factor is negative, or no finite number.
    """
    if not 0 <= factor < float("inf"):
        raise ValueError(f"waits cannot be multiplied by {factor}")
    return scenario if factor == 1 else _struct(scenario, factor)


# --- waits themselves


def _micros(wait: int, factor: float) -> int:
    return round(wait * factor)


def _span(span: Any, factor: float) -> Any:
    """A wait, fixed or drawn; what is none (`None`, `forever`, the name of an event) has no length to change."""
    if isinstance(span, model.Uniform):
        return model.Uniform(_micros(span.low, factor), _micros(span.high, factor))
    if isinstance(span, model.Lognormal):
        return model.Lognormal(_micros(span.median, factor), span.sigma)
    return _micros(span, factor) if type(span) is int else span


def _rate(rate: float | None, factor: float) -> float | None:
    """So many a second; without waits, all at once."""
    return None if rate is None or not factor else rate / factor


def _byte_rate(rate: float, factor: float) -> float:
    return rate / factor if factor else float("inf")


# --- what holds them


def _struct(value: S, factor: float) -> S:
    """A struct with those of its fields changed that hold waits, directly or further in."""
    changed = {}
    for name, change in _FIELDS.get(type(value), {}).items():
        before = getattr(value, name)
        after = change(before, factor)
        if after is not before:
            changed[name] = after
    return msgspec.structs.replace(value, **changed) if changed else value


def _each(values: tuple[Any, ...] | None, factor: float) -> tuple[Any, ...] | None:
    if not values:
        return values
    changed = tuple(_any(value, factor) for value in values)
    return changed if any(new is not old for new, old in zip(changed, values, strict=True)) else values


def _any(value: Any, factor: float) -> Any:
    """A struct, or a list of them (branches of `together`); anything else is data, whatever it looks like."""
    if isinstance(value, msgspec.Struct):
        return _struct(value, factor)
    return _each(value, factor) if isinstance(value, tuple) else value


def _keys(changes: Mapping[str, Change]) -> Change:
    """Some keys of a mapping."""

    def change(value: Any, factor: float) -> Any:
        if not isinstance(value, dict):
            return value
        return {key: changes[key](inner, factor) if key in changes else inner for key, inner in value.items()}

    return change


def _hold(value: Any, factor: float) -> Any:
    return _keys({"until": _span})(value, factor) if isinstance(value, dict) else _span(value, factor)


def _step(step: model.Step, factor: float) -> model.Step:
    """A step; what its payload holds depends on its verb."""
    changed = _struct(step, factor)
    payload = _PAYLOADS.get(step.verb, _any)(step.payload, factor)
    return changed if payload is step.payload else msgspec.structs.replace(changed, payload=payload)


def _steps(steps: tuple[model.Step, ...] | None, factor: float) -> tuple[model.Step, ...] | None:
    return steps and tuple(_step(step, factor) for step in steps)


def _together(payload: model.Together, factor: float) -> model.Together:
    return model.Together(tuple(_steps(branch, factor) or () for branch in payload.branches))


_STALL = _keys({"write": _span, "read": _span})
_STDERR = _keys({"every": _span})

_PAYLOADS: dict[str, Change] = {"wait": _span, "together": _together, "stall": _STALL, "stderr": _STDERR}
"""Verbs whose payload is a wait, or a mapping with waits in it. Payloads of other verbs are structs, or data."""

_EFFECTS: dict[str, Change] = {
    "delay": _span,
    "hold": _hold,
    "play_before": _steps,
    "play_after": _steps,
    "split": _keys({"pause": _span}),
    "rate": _byte_rate,
    "stall": _STALL,
    "stderr": _STDERR,
    "child": _span,
}
"""Effects of faults that take time."""

_FIELDS: dict[type, dict[str, Change]] = {
    model.Scenario: {
        "pace": _any, "sessions": _any, "turns": _each, "schedule": _each, "faults": _each, "expect": _each,
    },
    model.Pace: {"first": _span, "rate": _rate},
    model.Sessions: {"auto_title": _any, "cursor": _any, "replay": _any, "stored": _each},
    model.AutoTitle: {"after": _span},
    model.CursorRules: {"lifetime": _span},
    model.Replay: {"pace": _span},
    model.Stored: {"history": _steps},
    model.Turn: {"steps": _steps},
    model.Scheduled: {"after": _span, "every": _span, "steps": _steps},
    model.Fault: {"effects": _keys(_EFFECTS)},
    model.Expectation: {"within": _span, "value": _keys({"within": _span})},
    model.Step: {"after": _span, "pace": _any, "timeout": _span, "then": _each, "otherwise": _steps},
    model.Branch: {"steps": _steps},
    model.Tool: {"takes": _span},
    model.Terminal: {"kill_after": _span},
    model.WaitFor: {"timeout": _span},
    model.Repeat: {"every": _span, "steps": _steps},
}  # fmt: skip
"""Where waits stand: struct to field to what is done with it."""
