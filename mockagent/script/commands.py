"""What a script may yield, and how it ends a turn: the words between the players of verbs and the run that obeys."""

from __future__ import annotations

import enum
from collections.abc import Generator, Sequence
from typing import Any

from mockagent.scenario.model import Micros, Step
from mockagent.script.output import Fail, Stop, Ticket


class Signal(enum.Enum):
    """Commands without a value."""

    ROOM = enum.auto()  # go on when the output has room
    BREATH = enum.auto()  # go on when others have had their turn
    FOREVER = enum.auto()  # never go on


class Gather:
    """Goes on when all these branches have ended."""

    __slots__ = ("scripts",)

    def __init__(self, scripts: Sequence[Script]) -> None:
        self.scripts = scripts


class Listen:
    """Goes on when the client calls this method, with the message, or with None after the time-out."""

    __slots__ = ("method", "timeout")

    def __init__(self, method: str, timeout: Micros | None) -> None:
        self.method = method
        self.timeout = timeout


class Idle:
    """Goes on after a wait that belongs to a repetition without end."""

    __slots__ = ("wait",)

    def __init__(self, wait: Micros) -> None:
        self.wait = wait


Command = Micros | Signal | Gather | Listen | Idle | Ticket
Script = Generator[Command, Any, None]


class Ended(Exception):
    """Raised by a step that ends the turn, from any depth.

    Args:
        how: the stop reason, or the error.
        rest: the steps behind it in the same list; they play after the reply.
    """

    def __init__(self, how: Stop | Fail, rest: Sequence[Step] = ()) -> None:
        self.how = how
        self.rest = rest
        super().__init__(how)
