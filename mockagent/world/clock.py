"""The one clock: what time scenarios see, and how their waits become waiting.

With a start time in the scenario, time is logical: it stands still until a timer fires or something happens, so that
the same input gives the same times. Without, it is the wall clock. The clock only counts; `script.stage` keeps the
timers, and whoever owns an event loop does the waiting.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from mockagent.scenario.model import ClockRules, Micros

SECOND: Micros = 1_000_000
ACTIVITY: Micros = 1_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Clock:
    """Counts stage time (what timers are measured by) and tells scenario time (what clients see).

    Args:
        rules: `clock` of the scenario.
        monotonic: seconds that only grow; inside trio its own clock, so that a mock clock works.
        wall: seconds since the epoch.
    """

    def __init__(
        self,
        rules: ClockRules,
        *,
        monotonic: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self.logical = rules.now is not None
        self.speed = rules.speed
        self.monotonic = monotonic
        self._wall = wall
        self._base = rules.now or 0
        self._counted: Micros = 0
        self._started = monotonic()
        self._skipped: Micros = 0

    def restart(self, rules: ClockRules) -> None:
        """Begins anew, maybe by other rules."""
        self.logical = rules.now is not None
        self.speed = rules.speed
        self._base = rules.now or 0
        self._counted = self._skipped = 0
        self._started = self.monotonic()

    def resume(self, now: Micros) -> None:
        """Logical time goes on where it stopped, in a process before this one."""
        if self.logical:
            self._counted = max(self._counted, now - self._base)

    @property
    def counted(self) -> bool:
        """Whether stage time moves by events alone (logical, or speed 0) and not by itself."""
        return self.logical or self.speed == 0

    def stage(self) -> Micros:
        """Stage time in microseconds: the time that timers are ordered by."""
        if self.counted:
            return self._counted
        return int((self.monotonic() - self._started) * self.speed * SECOND) + self._skipped

    def now(self) -> Micros:
        """Scenario time in microseconds since the epoch."""
        if self.logical:
            return self._base + self._counted
        return int(self._wall() * SECOND) + self._skipped

    def reached(self, due: Micros) -> None:
        """A timer fires: counted time moves to its due time, never back."""
        if due > self._counted:
            self._counted = due

    def activity(self) -> None:
        """Something happened: counted time moves by a millisecond, so that times tell the order of events."""
        if self.counted:
            self._counted += ACTIVITY

    def skip(self, micros: Micros) -> None:
        """Moves time forward without waiting (`advance` of the test API)."""
        self._counted += micros
        self._skipped += micros

    def seconds(self, micros: Micros) -> float:
        """How long a wait of so many microseconds takes in real seconds; 0 when speed is 0."""
        return micros / SECOND / self.speed if self.speed else 0.0

    def iso(self, offset: Micros = 0) -> str:
        """Scenario time as ISO 8601 in UTC, to the millisecond."""
        return iso(self.now() + offset)

    def http_date(self, offset: Micros = 0) -> str:
        """Scenario time as an HTTP date (RFC 9110, 5.6.7)."""
        from email.utils import format_datetime

        return format_datetime(moment(self.now() + offset), usegmt=True)


def moment(micros: Micros) -> datetime:
    """Microseconds since the epoch as an aware datetime."""
    return _EPOCH + timedelta(microseconds=micros)


def iso(micros: Micros) -> str:
    """Microseconds since the epoch as ISO 8601 in UTC, to the millisecond."""
    return moment(micros).isoformat(timespec="milliseconds").replace("+00:00", "Z")
