"""What has been said and done in a session, in the order in which it happened.

Kept in neutral form, whichever protocol it came through, and given back by both. Entries grow while they are being
said, so that a turn cut short leaves behind what really went out.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

Part = str | dict[str, Any]


class Said(msgspec.Struct, kw_only=True):
    """One message: of the user, of the agent, or a thought. Parts are text or content blocks.

    `begins` marks the first entry of a message that a client gave as one (AAP, where a message may hold several).
    """

    role: Literal["system", "user", "say", "think"]
    parts: list[Part]
    message_id: str | None = None
    begins: bool = False


class Called(msgspec.Struct, kw_only=True):
    """One tool call, with its fields as they stand after the last update.

    `result` is what came out, in words or blocks; UNSET while the call is open. `returned` says when it came: how many
    entries there were by then, and the how-manieth result it was.
    """

    id: str
    name: str | None
    input: Any
    fields: dict[str, Any]
    side: Literal["server", "client"] = "server"
    result: Any = msgspec.UNSET
    denied: str | None = None
    returned: tuple[int, int] | None = None
    begins: bool = False

    @property
    def open(self) -> bool:
        """Whether it still waits for its result."""
        return self.result is msgspec.UNSET and self.denied is None


class Planned(msgspec.Struct, kw_only=True):
    """A plan; a later one replaces it."""

    entries: Any


Entry = Said | Called | Planned


class History:
    """The entries of one session.

    Attributes:
        changed: the places of entries that are new or have changed since somebody looked; None: nobody looks.
        base: so many entries at the start were there before anybody spoke.
        rows: where a state file keeps the entry at a place.
        written: how many parts of a message the file had when it was written last.
    """

    __slots__ = ("_calls", "_results", "_said", "base", "changed", "entries", "rows", "written")

    def __init__(self, entries: list[Entry] | None = None) -> None:
        self.entries: list[Entry] = []
        self.changed: dict[int, None] | None = None
        self.base = len(entries or ())
        self.rows: dict[int, int] = {}
        self.written: dict[int, int] = {}
        self._results = 0
        self._said: dict[tuple[str, str], int] = {}
        self._calls: dict[str, int] = {}
        for entry in entries or ():
            self.add(entry)

    def add(self, entry: Entry) -> None:
        """Adds an entry as it is: one that was kept somewhere."""
        at = len(self.entries)
        self.entries.append(entry)
        if isinstance(entry, Said) and entry.message_id is not None:
            self._said[entry.role, entry.message_id] = at
        elif isinstance(entry, Called):
            self._calls[entry.id] = at
            self._results = max(self._results, entry.returned[1] if entry.returned is not None else 0)

    def replace(self, at: int, entry: Entry) -> None:
        """Puts another version in an entry's place."""
        self.entries[at] = entry

    def _note(self, at: int) -> None:
        if self.changed is not None:
            self.changed[at] = None

    def say(self, role: Literal["system", "user", "say", "think"], parts: list[Part], message_id: str | None) -> None:
        """Adds text; a piece of a message that has begun is appended to it, whatever was said in between."""
        at = self._said.get((role, message_id)) if message_id is not None else None
        begun = self.entries[at] if at is not None else None
        if at is not None and isinstance(begun, Said):
            begun.parts.extend(parts)
            self._note(at)
            return
        self._note(len(self.entries))
        self.add(Said(role=role, parts=list(parts), message_id=message_id))

    def call(self, entry: Called) -> None:
        """Adds a tool call; one with the same id replaces the look-up, both stay in the record."""
        self._note(len(self.entries))
        self.add(entry)

    def find(self, id: str) -> Called | None:
        """The latest tool call with that id."""
        at = self._calls.get(id)
        entry = self.entries[at] if at is not None else None
        return entry if isinstance(entry, Called) else None

    def update(self, id: str, fields: dict[str, Any], result: Any = msgspec.UNSET, denied: str | None = None) -> None:
        """Changes a tool call; one that was never announced is added."""
        entry = self.find(id)
        if entry is None:
            entry = Called(id=id, name=None, input=None, fields={})
            self.call(entry)
        entry.fields.update(fields)
        if result is not msgspec.UNSET:
            entry.result = result
        entry.denied = denied if denied is not None else entry.denied
        if entry.returned is None and not entry.open:
            self._results += 1
            entry.returned = (len(self.entries), self._results)
        self._note(self._calls[id])

    def plan(self, entries: Any) -> None:
        """Adds a plan."""
        self._note(len(self.entries))
        self.add(Planned(entries=entries))
