"""A prompt in neutral form, and one that waits for the turn before it to end."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec

from mockagent.world.history import Part

if TYPE_CHECKING:
    from mockagent.script.run import Run


class Prompt(msgspec.Struct, kw_only=True):
    """What starts a turn.

    Attributes:
        text: its text, blocks without text left out.
        parts: the whole content, for the history.
        message: the whole message that brought it.
        facts: `protocol`, `transport`, `params`, and what else conditions may see.
        tool_result: name of the tool whose result starts the turn (AAP, a call left open in the history).
    """

    text: str
    parts: list[Part]
    message: Any
    facts: dict[str, Any]
    tool_result: str | None = None


class Waiting:
    """A prompt that waits for the turn before it to end.

    Args:
        begin: starts its turn.
        call_off: takes it out of the queue and answers it.

    Attributes:
        run: its turn, once that has begun.
    """

    def __init__(self, begin: Callable[[], Run], call_off: Callable[[Waiting], None]) -> None:
        self._begin = begin
        self._call_off = call_off
        self.run: Run | None = None

    def start(self) -> None:
        """Its turn has come."""
        self.run = self._begin()

    def cancel(self) -> None:
        """Cancels the prompt, whether or not its turn has begun."""
        if self.run is not None:
            self.run.cancel()
        else:
            self._call_off(self)
