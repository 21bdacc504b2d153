"""The journal in memory: what tests and the control API ask, wait for and listen to.

Bounded: the oldest lines are forgotten first. It is written by the mock's thread and may be read from any other; the
callbacks of subscribers run in the mock's thread and must return at once.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from mockagent.message import Burst, Direction, Fate, Message, Peer
from mockagent.script.match import glob
from mockagent.watch.entries import Entry, Stamp, place_of, printable, wire_of
from mockagent.watch.redact import Redactor

_decode = msgspec.json.Decoder().decode


class _Line:
    """A message in little room: it becomes an entry only when somebody looks."""

    __slots__ = (
        "damaged", "data", "direction", "fate", "http", "kind", "neutral", "origin", "peer", "seq", "session", "text",
        "time", "wire",
    )  # fmt: skip

    def __init__(self, time: float, message: Message, direction: Direction, fate: Fate, redact: Redactor) -> None:
        self.seq = 0
        self.time = time
        self.peer = message.peer
        self.direction = direction
        self.session = message.session
        self.kind = message.kind
        self.neutral = message.neutral
        self.origin = message.origin
        self.fate = fate.value if direction == "out" else Fate.INTACT.value
        self.damaged = message.damaged
        self.wire = wire_of(message) if message.plan or message.shape is not None else None
        self.http = None if message.http is None else redact.head(message.http)
        self.text: bytes | None = None
        self.data: Any = msgspec.UNSET
        if message.data is not None or message.raw:
            try:
                self.text = redact.text(message)
            except (msgspec.MsgspecError, UnicodeError, RecursionError, TypeError):
                self.data = message.data

    def entry(self, time: str) -> Entry:
        entry = Entry(
            time=time, seq=self.seq, session=self.session, kind=self.kind, origin=self.origin, fate=self.fate,
            damaged=self.damaged, wire=self.wire or {}, http=self.http, message=self.data, neutral=self.neutral,
            **place_of(self.peer, self.direction),
        )  # fmt: skip
        if self.text is not None:
            try:
                entry.message = _decode(self.text)
            except (msgspec.MsgspecError, UnicodeError, RecursionError):
                entry.text = printable(self.text)
        return entry


class _Block:
    """A burst as one: it becomes entries only when somebody looks."""

    __slots__ = ("common", "first", "lost", "neutral", "seq", "texts")

    def __init__(self, first: int, common: dict[str, Any], neutral: str, texts: list[bytes]) -> None:
        self.first = first
        self.seq = first + len(texts) - 1
        self.common = common
        self.neutral = neutral
        self.texts = texts
        self.lost = 0

    def __iter__(self) -> Iterator[Entry]:
        kept = len(self.texts) - self.lost
        for number, text in enumerate(self.texts):
            fate = "intact" if number < kept else "lost"
            yield Entry(seq=self.first + number, message=_decode(text), neutral=self.neutral, fate=fate, **self.common)


class Memory:
    """A tap that keeps entries.

    Args:
        clock: the time now, seconds since the epoch.
        redact: masks secrets.
        limit: how many lines are kept; a burst is forgotten as a whole.
        room: bytes of text that they may have together; the newest line is kept, however long it is.
    """

    def __init__(
        self, clock: Callable[[], float], redact: Redactor | None = None, limit: int = 50_000, room: int = 64 * 2**20
    ) -> None:
        self._clock = clock
        self._redact = redact or Redactor()
        self._limit = limit
        self._room = room
        self._size = 0
        self._stamp = Stamp()
        self._rows: deque[Entry | _Line | _Block] = deque()
        self._kept = 0
        self._seq = 0
        self._changed = threading.Condition()
        self._subscribers: list[Callable[[Entry], None]] = []

    # --- what others ask

    @property
    def entries(self) -> list[Entry]:
        """All lines that are kept, the oldest first."""
        return self.since(0)

    @property
    def last(self) -> int:
        """The number of the newest line; 0 when there is none yet."""
        return self._seq

    @property
    def forgotten(self) -> int:
        """How many lines were dropped because of the limit."""
        return self._seq - self._kept

    def since(self, seq: int) -> list[Entry]:
        """The lines after the one with that number."""
        rows: list[Entry | _Line | _Block] = []
        with self._changed:
            for row in reversed(self._rows):
                if row.seq <= seq:
                    break
                rows.append(row)
        stamp = Stamp()  # not the mock's: this may be any thread
        found: list[Entry] = []
        for row in reversed(rows):
            if isinstance(row, _Block):
                found.extend(entry for entry in row if entry.seq > seq)
            else:
                found.append(_entry_of(row, stamp))
        return found

    def requests(self, method: str = "*") -> list[Entry]:
        """What the client sent: messages of a kind (`session/list`, `GET /sessions`, `answer:...`), or neutral kind."""
        return [entry for entry in self.entries if entry.direction == "in" and is_kind(entry, method)]

    def sent(self, kind: str = "*") -> list[Entry]:
        """What left for the client, unless it was dropped, by kind (`reply:session/list`, `update:plan`) or glob."""
        return [
            entry
            for entry in self.entries
            if entry.direction == "out" and entry.fate not in ("unsent", "lost") and is_kind(entry, kind)
        ]

    def events(self, name: str = "*") -> list[Entry]:
        """Events by name or glob (`connected`, `fault`, `skipped`, ...)."""
        return [entry for entry in self.entries if entry.event is not None and glob(name, entry.event)]

    def malformed_input(self) -> list[Entry]:
        """Input that was no message."""
        return [entry for entry in self.entries if entry.malformed is not None]

    def wait_for(self, method: str, timeout: float, since: int = 0) -> Entry:
        """Blocks the calling thread (never the mock's own) until the client has sent a message of a kind.

        Args:
            method: as in `requests`; the name of an event is taken too.
            timeout: wall seconds.
            since: number of a line; earlier ones do not count. See `last`.

        Raises:
            TimeoutError: nothing came; the text says what did.
        """

        def look() -> Entry | None:
            nonlocal since
            for entry in self.since(since):
                since = entry.seq
                if awaited(entry, method):
                    return entry
            return None

        start = since
        with self._changed:
            found = self._changed.wait_for(look, timeout)
        if found is None:
            raise self.missing(method, timeout, start)
        return found

    def missing(self, method: str, timeout: float, since: int = 0) -> TimeoutError:
        """The error for what did not come in time; its text says what did come after a line."""
        return TimeoutError(f"the client did not send {method} within {timeout:g} s; it sent {self._heard(since)}")

    def restart(self) -> None:
        """Forgets everything; the next line has the number 1 again. Subscribers stay."""
        with self._changed:
            self._rows.clear()
            self._kept = self._seq = self._size = 0
            self._changed.notify_all()

    def subscribe(self, callback: Callable[[Entry], None]) -> Callable[[], None]:
        """Calls back for every line from now on.

        Returns:
            A function that ends it.
        """
        self._subscribers.append(callback)

        def unsubscribe() -> None:
            if callback in self._subscribers:
                self._subscribers.remove(callback)

        return unsubscribe

    # --- what the mock tells

    def saw(self, message: Message, direction: Direction, fate: Fate) -> None:
        """See `Tap`."""
        self._keep(_Line(self._clock(), message, direction, fate, self._redact))

    def saw_burst(self, burst: Burst) -> None:
        """See `Tap`."""
        texts = self._redact.texts(burst.kind, burst.texts)
        common = place_of(burst.peer, "out") | {
            "session": burst.session, "kind": burst.kind, "origin": burst.origin,
            "time": self._stamp.iso(self._clock()),
        }  # fmt: skip
        block = _Block(self._seq + 1, common, burst.neutral, texts)
        with self._changed:
            self._seq += len(texts)
            self._kept += len(texts)
            self._size += _size_of(block)
            self._rows.append(block)
            self._forget()
            self._changed.notify_all()
        if self._subscribers:
            for entry in block:
                self._tell(entry)

    def malformed(self, peer: Peer, data: bytes, why: str) -> None:
        """See `Tap`."""
        self._keep(self._entry(**place_of(peer, "in"), malformed=why, bytes=printable(data)))

    def note(self, event: str, peer: Peer | None, session: str | None, detail: dict[str, Any]) -> None:
        """See `Tap`."""
        entry = self._entry(event=event, session=session, detail=dict(detail))
        if peer is not None:
            entry.peer, entry.protocol, entry.transport = peer.id, peer.protocol, peer.transport
        self._keep(entry)

    def lost(self, peer: Peer, count: int) -> None:
        """See `Tap`."""
        with self._changed:
            left = count
            for row in reversed(self._rows):
                if left <= 0:
                    break
                if isinstance(row, _Block):
                    if row.common["peer"] == peer.id:
                        taken = min(left, len(row.texts) - row.lost)
                        row.lost += taken
                        left -= taken
                elif _left_for(row, peer) and row.fate not in ("unsent", "lost"):
                    row.fate = "lost"
                    left -= 1
        self.note("lost", peer, None, {"count": count})

    def close(self) -> None:
        """See `Tap`. What was kept can still be asked for."""

    def _entry(self, **members: Any) -> Entry:
        return Entry(time=self._stamp.iso(self._clock()), **members)

    def _keep(self, row: Entry | _Line) -> None:
        with self._changed:
            self._seq += 1
            row.seq = self._seq
            self._rows.append(row)
            self._kept += 1
            self._size += _size_of(row)
            self._forget()
            self._changed.notify_all()
        if self._subscribers:
            self._tell(_entry_of(row, self._stamp))

    def _forget(self) -> None:
        while (self._kept > self._limit or self._size > self._room) and len(self._rows) > 1:
            row = self._rows.popleft()
            self._kept -= len(row.texts) if isinstance(row, _Block) else 1
            self._size -= _size_of(row)

    def _tell(self, entry: Entry) -> None:
        for callback in tuple(self._subscribers):
            callback(entry)

    def _heard(self, since: int) -> str:
        kinds = [entry.kind or "malformed input" for entry in self.since(since) if entry.direction == "in"]
        if not kinds:
            return "nothing"
        shown = ", ".join(kinds[-10:])
        return shown if len(kinds) <= 10 else f"{len(kinds)} messages, the last of them {shown}"


def _entry_of(row: Entry | _Line, stamp: Stamp) -> Entry:
    return row if isinstance(row, Entry) else row.entry(stamp.iso(row.time))


def _size_of(row: Entry | _Line | _Block) -> int:
    """Bytes of the texts of a row."""
    if isinstance(row, _Block):
        return sum(map(len, row.texts))
    text = row.text if isinstance(row, _Line) else row.bytes
    return len(text or "")


def _left_for(row: Entry | _Line, peer: Peer) -> bool:
    """Whether it is a message that left for a client."""
    return isinstance(row, _Line) and row.direction == "out" and row.peer is peer


def awaited(entry: Entry, method: str) -> bool:
    """Whether a line is what `wait_for` waits for: a message of the client of that kind, or an event of that name."""
    return (entry.direction == "in" and is_kind(entry, method)) or entry.event == method


def is_kind(entry: Entry, pattern: str) -> bool:
    """Whether a line is a message of a kind: its own (or a glob over that), or the neutral one."""
    if entry.kind is not None and glob(pattern, entry.kind):
        return True
    return entry.neutral is not None and entry.neutral == pattern
