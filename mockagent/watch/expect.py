"""The `expect` list of a scenario: what it wants to see of the client, and what came closest when it did not.

Each entry is one small watcher; each says at any time whether it is met, as if everything ended now, because a mock is
often killed and not stopped. Times are wall seconds between arrivals. `within` counts from the moment that `after`
names (a kind of message in either direction, or an event), else from the first sign of life of a client.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any

from mockagent.message import Burst, Direction, Fate, Message, Peer
from mockagent.scenario.model import Expectation
from mockagent.watch.kinds import KindTable
from mockagent.watch.redact import Redactor
from mockagent.watch.shown import Shown, show
from mockagent.watch.watchers import REMEMBERED, WATCHERS, Verdict, Watcher


class Expect:
    """A tap that plays `expect`.

    Args:
        expectations: of the scenario.
        clock: wall seconds, never going back.
        redact: masks secrets in what is kept.
    """

    def __init__(
        self,
        expectations: Iterable[Expectation],
        clock: Callable[[], float] = time.monotonic,
        redact: Redactor | None = None,
    ) -> None:
        self._clock = clock
        self._redact = redact or Redactor()
        #: grows whenever a verdict may have changed
        self.changes = 0
        self.restart(expectations)

    def restart(self, expectations: Iterable[Expectation]) -> None:
        """Begins anew with these."""
        self._line = 0
        self._heard: dict[str, int] = {}
        self._watchers = [WATCHERS[entry.what](entry) for entry in expectations]
        self._out: KindTable[Watcher] = KindTable()
        for watcher in self._watchers:
            for pattern in watcher.outgoing():
                self._out.add(pattern, watcher)
        self._alive = False
        self.changes += 1

    def verdicts(self) -> list[Verdict]:
        """How it stands with every expectation, in the order of the scenario."""
        return [watcher.verdict(self._clock(), self._heard) for watcher in self._watchers]

    @property
    def failed(self) -> bool:
        """Whether one is not met, as things stand."""
        return not all(verdict.met for verdict in self.verdicts())

    # --- Tap

    def saw(self, message: Message, direction: Direction, fate: Fate) -> None:
        """See `Tap`."""
        self._line += 1
        if not self._watchers:
            return
        if direction == "in":
            self._came(message)
        elif fate is not Fate.UNSENT and (watchers := self._out_watchers(message.kind, message.neutral)):
            for watcher in watchers:
                watcher.left(message, self._clock())
            self.changes += 1

    def saw_burst(self, burst: Burst) -> None:
        """See `Tap`. A burst starts what waits for its kind; nothing else looks at its messages."""
        self._line += len(burst.texts)
        if watchers := self._out_watchers(burst.kind, burst.neutral):
            for watcher in watchers:
                watcher.begin(burst.kind, burst.neutral, self._clock())
            self.changes += 1

    def malformed(self, peer: Peer, data: bytes, why: str) -> None:
        """See `Tap`."""
        self._line += 1
        self._live()

    def note(self, event: str, peer: Peer | None, session: str | None, detail: dict[str, Any]) -> None:
        """See `Tap`."""
        self._line += 1
        if peer is not None:
            self._live()
        now = self._clock()
        for watcher in self._watchers:
            watcher.begin(event, None, now)
            watcher.happened(event, detail, now)
        self.changes += 1

    def lost(self, peer: Peer, count: int) -> None:
        """See `Tap`."""
        self._line += 1

    def close(self) -> None:
        """See `Tap`."""

    def _came(self, message: Message) -> None:
        self._live()
        if message.kind in self._heard or len(self._heard) < REMEMBERED:
            self._heard[message.kind] = self._heard.get(message.kind, 0) + 1
        now = self._clock()
        shown: list[Shown] = []

        def small() -> Shown:
            if not shown:
                shown.append(show(message, self._line, self._redact))
            return shown[0]

        for watcher in self._watchers:
            watcher.came(message, now, small)
            watcher.begin(message.kind, message.neutral, now)
        self.changes += 1

    def _out_watchers(self, kind: str, neutral: str | None) -> tuple[Watcher, ...]:
        found = self._out.find(kind)
        if neutral is not None and (more := self._out.find(neutral)):
            found += tuple(watcher for watcher in more if watcher not in found)
        return found

    def _live(self) -> None:
        if not self._alive:
            self._alive = True
            now = self._clock()
            for watcher in self._watchers:
                watcher.alive(now)
