"""The interface of everything that only looks: journal, audit, expectations.

Taps never change a message and never delay one. An outgoing message is seen just before it is handed to the operating
system, so that the client's answer can never be seen first; if the write then fails, `lost` takes it back.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from mockagent.message import Burst, Direction, Fate, Message, Peer


class Tap(Protocol):
    """Looks at what really came and what really left, in order."""

    def saw(self, message: Message, direction: Direction, fate: Fate) -> None:
        """A message came in (before any fault), or leaves (after all faults)."""

    def saw_burst(self, burst: Burst) -> None:
        """Many intact outgoing messages of one kind leave. Called in place of `saw` for each."""

    def malformed(self, peer: Peer, data: bytes, why: str) -> None:
        """Bytes came in that are no message."""

    def note(self, event: str, peer: Peer | None, session: str | None, detail: dict[str, Any]) -> None:
        """Something else worth a line happened: `connected`, `closed`, `fault`, `skipped`, `turn_started`, ..."""

    def lost(self, peer: Peer, count: int) -> None:
        """The last `count` messages seen as leaving for this peer did not leave: its channel broke."""

    def close(self) -> None:
        """The process ends; whatever is buffered is written."""


class Taps:
    """Several taps as one."""

    def __init__(self, *taps: Tap) -> None:
        self._taps = taps
        self._flushes: list[Callable[[], None]] = [tap.flush for tap in taps if hasattr(tap, "flush")]

    def add(self, tap: Tap) -> None:
        """One more, behind the others."""
        self._taps = (*self._taps, tap)
        if hasattr(tap, "flush"):
            self._flushes.append(tap.flush)

    def flush(self) -> None:
        """Nothing is going on just now: taps that keep a file bring it up to date. Cheap when there are none."""
        for flush in self._flushes:
            flush()

    def saw(self, message: Message, direction: Direction, fate: Fate) -> None:
        for tap in self._taps:
            tap.saw(message, direction, fate)

    def saw_burst(self, burst: Burst) -> None:
        for tap in self._taps:
            tap.saw_burst(burst)

    def malformed(self, peer: Peer, data: bytes, why: str) -> None:
        for tap in self._taps:
            tap.malformed(peer, data, why)

    def note(self, event: str, peer: Peer | None = None, session: str | None = None, **detail: Any) -> None:
        for tap in self._taps:
            tap.note(event, peer, session, detail)

    def lost(self, peer: Peer, count: int) -> None:
        for tap in self._taps:
            tap.lost(peer, count)

    def close(self) -> None:
        for tap in self._taps:
            tap.close()
