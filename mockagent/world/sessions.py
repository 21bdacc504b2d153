"""Sessions and their store.

A session belongs to the world, not to a connection or a protocol: what is made over one is there for the other. This
module keeps data; what plays in a session is `script`'s.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any, Literal

from mockagent.errors import Refusal
from mockagent.scenario import model
from mockagent.world.clock import Clock, iso
from mockagent.world.history import History
from mockagent.world.metadata import clean_title, merge
from mockagent.world.seeds import Seeds

State = Literal["stored", "active", "closed", "deleted"]


class Session:
    """One conversation.

    Attributes:
        state: `stored` (listed, not open), `active`, `closed`, `deleted`.
        updated: time of the last activity in microseconds since the epoch, or None.
        turns: how many prompts were answered or are being answered.
        saved: values kept by `save`.
        config: the current value of each option, by id.
        tools: server-side tools that the client enabled (AAP): name to trust.
        client_tools: tools that the client declared (AAP), by name.
        last_stop: stop reason of the last turn that ended.
        runs: how many runs of each kind have begun.
    """

    def __init__(self, id: str, cwd: str, created: int, directories: tuple[str, ...] = ()) -> None:
        self.id = id
        self.cwd = cwd
        self.directories = directories
        self.title: str | None = None
        self.updated: int | None = created
        self.meta: dict[str, Any] | None = None
        self.state: State = "active"
        self.history = History()
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

    @property
    def updated_at(self) -> str | None:
        """Time of the last activity as ISO 8601."""
        return None if self.updated is None else iso(self.updated)

    def next_message_id(self) -> str:
        """An id for a new message, unique in the session."""
        self.messages += 1
        return f"msg_{self.messages}"

    def next_call_id(self) -> str:
        """An id for a new tool call, unique in the session."""
        self.calls += 1
        return f"call_{self.calls}"


class Sessions:
    """All sessions of one agent.

    Args:
        scenario: its `sessions` and `agent` sections say what is there at the start.
        ids: where new ids come from.
    """

    def __init__(self, scenario: model.Scenario, clock: Clock, seeds: Seeds, ids: Random) -> None:
        self._rules = scenario.sessions
        self._agent = scenario.agent
        self._clock = clock
        self._seeds = seeds
        self._ids = ids
        self._kept: dict[str, Session] = {}
        for stored in self._rules.stored:
            self._kept[stored.id] = self._from_store(stored)

    def _from_store(self, stored: model.Stored) -> Session:
        session = Session(stored.id, stored.cwd or self._rules.cwd, self._clock.now(), stored.additional_directories)
        session.title = stored.title
        session.meta = stored.meta
        session.state = "stored"
        if stored.updated_at is None:
            session.updated = None
        elif isinstance(stored.updated_at, int):
            session.updated = stored.updated_at
        self._set_up(session)
        return session

    def _set_up(self, session: Session) -> None:
        session.config = {option.id: option.value for option in self._agent.options}
        session.mode = self._agent.modes[0].id if self._agent.modes else None

    def create(self, cwd: str | None = None, directories: tuple[str, ...] = (), *, id: str | None = None) -> Session:
        """Makes a session, active at once. Ids come from the seed: the n-th session always has the same."""
        id = self._new_id() if id is None else id
        session = Session(id, cwd or self._rules.cwd, self._clock.now(), directories)
        self._set_up(session)
        self._kept[id] = session
        return session

    def _new_id(self) -> str:
        while (id := f"sess_{self._ids.getrandbits(48):012x}") in self._kept:
            pass
        return id

    def get(self, id: str) -> Session | None:
        """The session of that id, unless it was deleted or never was."""
        return self._kept.get(id)

    def listed(self, cwd: str | None = None) -> list[Session]:
        """All sessions that a client would see, the last active first; `cwd` keeps only that directory's."""
        rows = [session for session in self._kept.values() if cwd is None or _same_directory(session.cwd, cwd)]
        rows.sort(key=lambda session: -1 if session.updated is None else session.updated, reverse=True)
        return rows

    def page(self, cwd: str | None, cursor: str | None) -> tuple[list[Session], str | None]:
        """One page of the list.

        Args:
            cwd: only sessions of this directory.
            cursor: where the page before ended; None: the first page.

        Returns:
            The rows, and the cursor of the next page or None.

        Raises:
            Refusal: `invalid_cursor`.
        """
        rows = self.listed(cwd)
        start = 0
        if cursor is not None:
            start = self._start(cursor, rows)
        end = start + self._rules.page_size
        return rows[start:end], (rows[end - 1].id if end < len(rows) else None)

    def _start(self, cursor: str, rows: list[Session]) -> int:
        for index, session in enumerate(rows):
            if session.id == cursor:
                return index + 1
        raise Refusal("invalid_cursor", f"Invalid cursor: {cursor!r} was not given out by this list")

    def touch(self, session: Session) -> None:
        """Notes activity: `updatedAt` moves with every activity, not only with metadata."""
        self._clock.activity()
        session.updated = self._clock.now()

    def apply(self, session: Session, info: model.InfoFields) -> model.InfoFields | None:
        """Changes metadata as `session_info_update` says.

        Returns:
            What to send: the fields as they were applied, or None when the title was refused.
        """
        title = info.title
        if isinstance(title, str) and not info.force:
            title = clean_title(title, self._rules.title_limit)
            if title is None:
                return None
        self.touch(session)
        if title is None or isinstance(title, str):
            session.title = title
        if info.updated_at is None:
            session.updated = None
        elif isinstance(info.updated_at, str):
            session.updated = _micros(info.updated_at, session.updated)
        if info.meta is None or isinstance(info.meta, dict):
            session.meta = merge(session.meta, info.meta)
        return model.InfoFields(title=title, updated_at=info.updated_at, meta=info.meta, force=info.force)

    def delete(self, session: Session) -> None:
        """Removes a session from every list."""
        session.state = "deleted"
        self._kept.pop(session.id, None)
        self._seeds.forget(session.id)

    def __iter__(self) -> Iterator[Session]:
        return iter(self._kept.values())

    def __len__(self) -> int:
        return len(self._kept)


def _same_directory(one: str, other: str) -> bool:
    return (one.rstrip("/") or "/") == (other.rstrip("/") or "/")


def _micros(text: str, otherwise: int | None) -> int | None:
    """An ISO time as microseconds since the epoch; times that are none leave the order as it was."""
    from datetime import UTC, datetime

    try:
        parsed = datetime.fromisoformat(text)
    except ValueError:
        return otherwise
    if parsed.tzinfo is None:
        parsed = parsed.replace(tzinfo=UTC)
    return int(parsed.timestamp() * 1_000_000)
