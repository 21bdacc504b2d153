"""Steps that wait for a call of the client (`wait_for`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mockagent.world.sessions import Session

Heard = Callable[[Any], None]


class Listeners:
    """Who waits for which method, in which session."""

    def __init__(self) -> None:
        self._entries: list[tuple[str, str, Heard]] = []

    def listen(self, method: str, session: Session, heard: Heard) -> Callable[[], None]:
        """Calls `heard` once with the next message of that method in that session.

        Returns:
            A function that calls it off.
        """
        entry = (method, session.id, heard)
        self._entries.append(entry)

        def off() -> None:
            if entry in self._entries:
                self._entries.remove(entry)

        return off

    def heard(self, method: str, session_id: str | None, message: object) -> None:
        """The client called a method; one that names no session concerns all."""
        if not self._entries:
            return
        for entry in list(self._entries):
            wanted, where, call = entry
            if wanted == method and (session_id is None or session_id == where):
                self._entries.remove(entry)
                call(message)

    @property
    def waiting(self) -> int:
        """How many steps wait."""
        return len(self._entries)

    def clear(self) -> None:
        """Nobody waits any more."""
        self._entries.clear()
