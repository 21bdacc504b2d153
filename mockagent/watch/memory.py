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
from mockagent.watch.entries import Entry, Stamp, head_of, place_of, printable
from mockagent.watch.redact import Redactor

_decode = msgspec.json.Decoder().decode


class _Block:
    """A burst as one: it becomes entries only when somebody looks."""

    __slots__ = ("common", "first", "lost", "neutral", "texts")

    def __init__(self, first: int, common: dict[str, Any], neutral: str, texts: list[bytes]) -> None:
        self.first = first
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
    """

    def __init__(self, clock: Callable[[], float], redact: Redactor | None = None, limit: int = 50_000) -> None:
        self._clock = clock
        self._redact = redact or Redactor()
        self._limit = limit
        self._stamp = Stamp()
        self._rows: deque[Entry | _Block] = deque()
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
        with self._changed:
            rows = list(self._rows)
        found: list[Entry] = []
        for row in rows:
            if isinstance(row, Entry):
                if row.seq > seq:
                    found.append(row)
            elif row.first + len(row.texts) > seq:
                found.extend(entry for entry in row if entry.seq > seq)
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
            self._kept = self._seq = 0
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
        entry = self._entry(**head_of(message, direction, fate), neutral=message.neutral)
        if message.http is not None:
            entry.http = self._redact.head(message.http)
        if message.data is not None or message.raw:
            self._fill(entry, message, direction)
        self._keep(entry)

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
                elif row.direction == "out" and row.peer == peer.id and row.fate not in ("unsent", "lost"):
                    row.fate = "lost"
                    left -= 1
        self.note("lost", peer, None, {"count": count})

    def close(self) -> None:
        """See `Tap`. What was kept can still be asked for."""

    def _entry(self, **members: Any) -> Entry:
        return Entry(time=self._stamp.iso(self._clock()), **members)

    def _fill(self, entry: Entry, message: Message, direction: Direction) -> None:
        try:
            text = self._redact.text(message)
            entry.message = message.data if direction == "in" and text is message.raw else _decode(text)
        except (msgspec.MsgspecError, UnicodeError, RecursionError, TypeError):
            if message.raw is None:
                entry.message = message.data
            else:
                entry.text = printable(message.raw)

    def _keep(self, entry: Entry) -> None:
        with self._changed:
            self._seq += 1
            entry.seq = self._seq
            self._rows.append(entry)
            self._kept += 1
            self._forget()
            self._changed.notify_all()
        self._tell(entry)

    def _forget(self) -> None:
        while self._kept > self._limit and len(self._rows) > 1:
            row = self._rows.popleft()
            self._kept -= 1 if isinstance(row, Entry) else len(row.texts)

    def _tell(self, entry: Entry) -> None:
        for callback in tuple(self._subscribers):
            callback(entry)

    def _heard(self, since: int) -> str:
        kinds = [entry.kind or "malformed input" for entry in self.since(since) if entry.direction == "in"]
        if not kinds:
            return "nothing"
        shown = ", ".join(kinds[-10:])
        return shown if len(kinds) <= 10 else f"{len(kinds)} messages, the last of them {shown}"


def awaited(entry: Entry, method: str) -> bool:
    """Whether a line is what `wait_for` waits for: a message of the client of that kind, or an event of that name."""
    return (entry.direction == "in" and is_kind(entry, method)) or entry.event == method


def is_kind(entry: Entry, pattern: str) -> bool:
    """Whether a line is a message of a kind: its own (or a glob over that), or the neutral one."""
    if entry.kind is not None and glob(pattern, entry.kind):
        return True
    return entry.neutral is not None and entry.neutral == pattern
