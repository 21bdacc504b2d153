"""The order of the session list, and what it was when somebody began to page through it.

A list that is paged through must neither repeat nor lose a row because a session was used meanwhile. So a change of
order does not move an entry: it ends one and begins another, and a cursor sees the entries of the epoch in which its
first page was made. An epoch ends when something changes after a cursor was given out; without cursors nothing piles
up. Knows ids, folders and keys, and nothing of sessions.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import deque
from collections.abc import Iterator

Key = tuple[int, int, int]
"""Ascending in list order: minus the time of the last activity, then two numbers that part equal times."""

NEVER = 1 << 62
"""In place of minus the time: sessions without one come last."""

HORIZON = 1000
"""Epochs that are remembered; a cursor of an older one has expired."""

_OPEN = 1 << 62


class Entry:
    """Where a session stands in the list, during some epochs.

    Attributes:
        key: its place.
        since: first epoch in which it stands there.
        until: first epoch in which it does not any more.
    """

    __slots__ = ("cwd", "id", "key", "since", "until")

    def __init__(self, id: str, cwd: str, key: Key, since: int) -> None:
        self.id = id
        self.cwd = cwd
        self.key = key
        self.since = since
        self.until = _OPEN


def _key(entry: Entry) -> Key:
    return entry.key


class Order:
    """The places of all sessions that are kept.

    Attributes:
        epoch: the current one.
    """

    def __init__(self) -> None:
        self.epoch = 0
        self._given_out = False
        self._all: list[Entry] = []
        self._by_cwd: dict[str, list[Entry]] = {}
        self._current: dict[str, Entry] = {}
        self._past: dict[str, list[Entry]] = {}
        self._ended: deque[Entry] = deque()

    @property
    def horizon(self) -> int:
        """The oldest epoch that can still be looked at."""
        return max(self.epoch - HORIZON, 0)

    def give_out(self) -> int:
        """A cursor is given out for the current epoch: what changes from now on belongs to the next."""
        self._given_out = True
        return self.epoch

    def change(self) -> int:
        """Something is about to change.

        Returns:
            The epoch to which the change belongs.
        """
        if self._given_out:
            self.epoch += 1
            self._given_out = False
            self._forget()
        return self.epoch

    def place(self, id: str, cwd: str, key: Key) -> None:
        """A session stands at this place from the current epoch on."""
        before = self._current.get(id)
        if before is not None:
            if before.key == key:
                return
            self._end(before)
        entry = self._current[id] = Entry(id, cwd, key, self.epoch)
        for lane in self._lanes(cwd):
            insort(lane, entry, key=_key)

    def remove(self, id: str) -> None:
        """A session is in no list any more, not even in one that was begun."""
        for entry in [*self._past.pop(id, ()), self._current.pop(id, None)]:
            if entry is not None:
                self._take_out(entry)

    def behind(self, cwd: str | None, mark: Key | None, epoch: int) -> Iterator[Entry]:
        """The entries of an epoch behind a place (None: all), in order.

        Args:
            cwd: only those of this folder.
            mark: key of the last row that is known.
            epoch: as of when.
        """
        lane = self._all if cwd is None else self._by_cwd.get(cwd, [])
        start = 0 if mark is None else bisect_right(lane, mark, key=_key)
        for at in range(start, len(lane)):
            entry = lane[at]
            if entry.since <= epoch < entry.until:
                yield entry

    def _lanes(self, cwd: str) -> tuple[list[Entry], list[Entry]]:
        return self._all, self._by_cwd.setdefault(cwd, [])

    def _end(self, entry: Entry) -> None:
        """The entry stands for no epoch from this one on; one that began in this epoch has never been seen."""
        if entry.since == self.epoch:
            self._take_out(entry)
            return
        entry.until = self.epoch
        self._past.setdefault(entry.id, []).append(entry)
        self._ended.append(entry)

    def _forget(self) -> None:
        """Drops what only cursors from beyond the horizon would see."""
        while self._ended and self._ended[0].until <= self.horizon:
            entry = self._ended.popleft()
            past = self._past.get(entry.id)
            if past is not None and entry in past:
                past.remove(entry)
                if not past:
                    del self._past[entry.id]
                self._take_out(entry)

    def _take_out(self, entry: Entry) -> None:
        for lane in self._lanes(entry.cwd):
            at = bisect_left(lane, entry.key, key=_key)
            while lane[at] is not entry:
                at += 1
            del lane[at]
