"""Effects as a scenario writes them, from the values that the loader has made of them: for the journal.

What a fault did can then be written again by hand, or by a replay. Steps that a fault plays are left out: what they
said stands in the journal itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from mockagent.scenario.model import Lognormal, Uniform

LONGEST = 1000
"""Characters of a text that are kept; filler may have millions."""


def written(effects: Mapping[str, Any]) -> dict[str, Any]:
    """The effects of one fault.

    Args:
        effects: name -> value, as in `scenario.model.Fault.effects`.

    Returns:
        What JSON can say, with spans as text (`250ms`).
    """
    return {name: _WRITE.get(name, _plain)(value) for name, value in effects.items() if name not in _STEPS}


_STEPS = frozenset({"play_before", "play_after", "instead"})


def span(value: Any) -> Any:
    """A span: `250ms`, `{uniform: [...]}`, `{lognormal: {...}}`; words such as `forever` stay."""
    if isinstance(value, Uniform):
        return {"uniform": [span(value.low), span(value.high)]}
    if isinstance(value, Lognormal):
        return {"lognormal": {"median": span(value.median), "sigma": value.sigma}}
    return f"{value / 1000:g}ms" if isinstance(value, int) else value


def _plain(value: Any) -> Any:
    if isinstance(value, str):
        return value if len(value) <= LONGEST else f"{value[:LONGEST]}..."
    if isinstance(value, Mapping):
        return {key: _plain(part) for key, part in value.items()}
    return [_plain(part) for part in value] if isinstance(value, tuple | list) else value


def _with_spans(*keys: str) -> Callable[[Any], Any]:
    def write(value: Any) -> Any:
        if not isinstance(value, Mapping):
            return span(value)
        return {key: span(part) if key in keys else _plain(part) for key, part in value.items() if part is not None}

    return write


def _exit(value: Any) -> Any:
    number = value.get("signal") if isinstance(value, Mapping) else None
    if not isinstance(number, int):
        return value
    import signal

    return {"signal": signal.Signals(number).name}


_WRITE: dict[str, Callable[[Any], Any]] = {
    "delay": span,
    "hold": _with_spans("until"),
    "split": _with_spans("pause"),
    "stall": _with_spans("write", "read"),
    "stderr": _with_spans("every"),
    "rate": lambda value: f"{value:g}B/s",
    "exit": _exit,
}
