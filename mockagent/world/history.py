"""What has been said and done in a session, in the order in which it happened.

Kept in neutral form, whichever protocol it came through, and given back by both. Entries grow while they are being
said, so that a turn cut short leaves behind what really went out.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

Part = str | dict[str, Any]


class Said(msgspec.Struct, kw_only=True):
    """One message: of the user, of the agent, or a thought. Parts are text or content blocks."""

    role: Literal["system", "user", "say", "think"]
    parts: list[Part]
    message_id: str | None = None


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

    @property
    def open(self) -> bool:
        """Whether it still waits for its result."""
        return self.result is msgspec.UNSET and self.denied is None


class Planned(msgspec.Struct, kw_only=True):
    """A plan; a later one replaces it."""

    entries: Any


Entry = Said | Called | Planned


class History:
    """The entries of one session."""

    __slots__ = ("_calls", "_results", "_said", "entries")

    def __init__(self, entries: list[Entry] | None = None) -> None:
        self.entries: list[Entry] = entries or []
        self._results = 0
        self._said = {(entry.role, entry.message_id): entry for entry in self.entries if isinstance(entry, Said)}
        self._calls = {entry.id: entry for entry in self.entries if isinstance(entry, Called)}

    def say(self, role: Literal["system", "user", "say", "think"], parts: list[Part], message_id: str | None) -> None:
        """Adds text; a piece of a message that has begun is appended to it, whatever was said in between."""
        begun = self._said.get((role, message_id)) if message_id is not None else None
        if begun is not None:
            begun.parts.extend(parts)
            return
        entry = Said(role=role, parts=list(parts), message_id=message_id)
        self.entries.append(entry)
        if message_id is not None:
            self._said[role, message_id] = entry

    def call(self, entry: Called) -> None:
        """Adds a tool call; one with the same id replaces the look-up, both stay in the record."""
        self.entries.append(entry)
        self._calls[entry.id] = entry

    def find(self, id: str) -> Called | None:
        """The latest tool call with that id."""
        return self._calls.get(id)

    def update(self, id: str, fields: dict[str, Any], result: Any = msgspec.UNSET, denied: str | None = None) -> None:
        """Changes a tool call; one that was never announced is added."""
        entry = self._calls.get(id)
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

    def plan(self, entries: Any) -> None:
        """Adds a plan."""
        self.entries.append(Planned(entries=entries))
