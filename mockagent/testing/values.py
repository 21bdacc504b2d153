"""What both kinds of mock share: how arguments become parts of scenarios, and where in the test they were written."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from mockagent.control import spec
from mockagent.scenario import model

UNSET: Any = msgspec.UNSET

T = TypeVar("T")


def pushed(title: Any, meta: Any, steps: Sequence[Any]) -> tuple[model.Step, ...]:
    """The steps of a push. Raises ValueError, with every mistake."""
    values = {"title": title, "meta": meta, "steps": steps or UNSET}
    return spec.update_of({key: value for key, value in values.items() if value is not UNSET})


def fault(
    at: str, when: Mapping[str, Any] | None, save: Mapping[str, str] | None, effects: Mapping[str, Any], depth: int
) -> model.Fault:
    """A fault, placed at the line of the test that arms it. Raises ValueError, with every mistake."""
    values = {"at": at, "when": when, "save": save, **effects}
    return spec.fault_of({key: value for key, value in values.items() if value is not None}, _line(depth + 1))


def _line(depth: int) -> model.Place:
    caller = sys._getframe(depth + 1)
    file = caller.f_code.co_filename
    near = os.path.relpath(file) if os.path.isabs(file) and file.startswith(os.getcwd() + os.sep) else file
    return model.Place(file=near, line=caller.f_lineno, column=1)


def several(given: Sequence[T]) -> tuple[T | str, ...]:
    """A list as it is. A text is one entry: its letters are never meant, and as a glob its `*` would stand for all."""
    if isinstance(given, str):
        return (given,)
    return tuple(given)


def check_pace(seed: Any, speed: Any) -> None:
    """Looks at what a mock is to be played with.

    Raises:
        TypeError: it is no number.
        ValueError: it is none that can be played with.
    """
    if seed is not None and type(seed) is not int:
        raise TypeError(f"seed: this has to be an integer, not {seed!r}")
    if speed is None:
        return
    if type(speed) not in (int, float):
        raise TypeError(f"speed: this has to be a number, not {speed!r}")
    if not 0 <= speed < float("inf"):
        raise ValueError(f"speed: this has to be a number from 0 on, not {speed!r}")
