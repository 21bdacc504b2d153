"""One session: what it shows, what was said in it, and what it has counted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from mockagent.world.clock import iso
from mockagent.world.history import History
from mockagent.world.order import NEVER, Key

State = Literal["stored", "active", "closed", "deleted"]


class Session:
    """One conversation.

    Args:
        id: its id.
        cwd: its folder, which never changes.
        created: scenario time in microseconds since the epoch.
        directories: further folders.
        place: parts sessions of equal time in the list; see `world.order.Key`.

    Attributes:
        state: `stored` (listed, not open), `active`, `closed`, `deleted`.
        updated: time of the last activity in microseconds since the epoch, or None.
        stated: what the list shows in place of that time, if a scenario wrote something that is none.
        turns: how many prompts were answered or are being answered.
        saved: values kept by `save`.
        config: the current value of each option, by id.
        tools: server-side tools that the client enabled (AAP): name to trust.
        client_tools: tools that the client declared (AAP), by name.
        last_stop: stop reason of the last turn that ended.
        runs: how many runs of each kind have begun.
        parked: the past of a turn that waits for its client, if sessions are kept; see `script.past`.
        next_update: stage time before which no metadata is sent.
        recall: gives the history as it was; called with the session when it is first wanted.
        watched: somebody wants to know which entries change.
    """

    def __init__(
        self,
        id: str,
        cwd: str,
        created: int,
        directories: tuple[str, ...] = (),
        *,
        place: tuple[int, int] = (0, 0),
    ) -> None:
        self.id = id
        self.cwd = cwd
        self.directories = directories
        self.place = place
        self.title: str | None = None
        self.updated: int | None = created
        self.stated: str | None = None
        self.meta: dict[str, Any] | None = None
        self.state: State = "active"
        self.turns = 0
        self.messages = 0
        self.calls = 0
        self.saved: dict[str, Any] = {}
        self.mode: str | None = None
        self.config: dict[str, Any] = {}
        self.tools: dict[str, bool] = {}
        self.client_tools: dict[str, dict[str, Any]] = {}
        self.last_stop: str | None = None
        self.runs: dict[str, int] = {}
        self.prompt = ""
        self.parked: bytes | None = None
        self.next_update = 0
        self.recall: Callable[[Session], History] | None = None
        self.watched = False
        self._history: History | None = None

    @property
    def history(self) -> History:
        """What has been said and done."""
        if self._history is None:
            self._history = self.recall(self) if self.recall is not None else History()
            self._history.changed = {} if self.watched else None
        return self._history

    @property
    def recalled(self) -> bool:
        """Whether the history has been looked at."""
        return self._history is not None

    @property
    def updated_at(self) -> str | None:
        """Time of the last activity as ISO 8601, or what a scenario wrote in its place."""
        if self.stated is not None:
            return self.stated
        return None if self.updated is None else iso(self.updated)

    @property
    def key(self) -> Key:
        """Its place in the list."""
        return (NEVER if self.updated is None else -self.updated, *self.place)

    def next_message_id(self) -> str:
        """An id for a new message, unique in the session."""
        self.messages += 1
        return f"msg_{self.messages}"

    def next_call_id(self) -> str:
        """An id for a new tool call, unique in the session."""
        self.calls += 1
        return f"call_{self.calls}"

    def copy_to(self, other: Session) -> None:
        """Gives another session the same past: history, metadata, mode, options, counts. Nothing is shared."""
        from copy import deepcopy

        entries = deepcopy(self.history.entries)
        other.history.changed = {} if other.watched else None
        for at, entry in enumerate(entries):
            other.history.add(entry)
            if other.history.changed is not None:
                other.history.changed[at] = None
        for name in _COPIED:
            setattr(other, name, deepcopy(getattr(self, name)))


_COPIED = (
    "title",
    "meta",
    "mode",
    "config",
    "tools",
    "client_tools",
    "saved",
    "turns",
    "messages",
    "calls",
    "runs",
    "prompt",
    "last_stop",
)
