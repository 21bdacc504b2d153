"""The journal of a mock as a test sees it: every question is answered by what has happened up to it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mockagent.watch.entries import Entry
from mockagent.watch.memory import Memory

if TYPE_CHECKING:
    from mockagent.testing.agent import MockAgent


class Journal:
    """The journal of a mock, as it is at the moment of each question. See `watch.memory.Memory`."""

    def __init__(self, mock: MockAgent) -> None:
        self._mock = mock

    def __repr__(self) -> str:
        return f"<journal of {self._mock!r}>"

    @property
    def _now(self) -> Memory:
        self._mock._sync()
        return self._mock._memory

    @property
    def entries(self) -> list[Entry]:
        """All lines, the oldest first."""
        return self._now.entries

    @property
    def last(self) -> int:
        """Number of the newest line."""
        return self._now.last

    def since(self, seq: int) -> list[Entry]:
        """The lines after the one with that number."""
        return self._now.since(seq)

    def requests(self, method: str = "*") -> list[Entry]:
        """What the client sent: by kind (`session/list`, `GET /sessions`, `answer:...`), neutral kind, or glob."""
        return self._now.requests(method)

    def sent(self, kind: str = "*") -> list[Entry]:
        """What left for the client: by kind (`reply:session/list`, `update:plan`), neutral kind, or glob."""
        return self._now.sent(kind)

    def events(self, name: str = "*") -> list[Entry]:
        """What else happened: by name or glob (`connected`, `fault`, `turn_ended`, ...)."""
        return self._now.events(name)

    def malformed_input(self) -> list[Entry]:
        """What the client sent that was no message."""
        return self._now.malformed_input()
