"""Timers and branches to run, in one order: the stage on which all runs of the process play.

One heap of timers ordered by (due time, birth) and one queue of what can go on; nothing here waits or knows an event
loop. `script.driver` is the task that moves it. That all sessions share one stage is what makes the order of their
outputs independent of how tasks are scheduled.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Hashable
from heapq import heappop, heappush

from mockagent.scenario.model import Micros
from mockagent.world.clock import SECOND, Clock


class Timer:
    """A call that is due at a time: `due` in stage time orders it, `at` in monotonic seconds says when to wake up."""

    __slots__ = ("at", "birth", "call", "due")

    def __init__(self, due: Micros, at: float, birth: int, call: Callable[[], None]) -> None:
        self.due = due
        self.at = at
        self.birth = birth
        self.call: Callable[[], None] | None = call

    def cancel(self) -> None:
        """The call will not be made; doing it twice is harmless."""
        self.call = None

    def __lt__(self, other: Timer) -> bool:
        return (self.due, self.birth) < (other.due, other.birth)


class Stage:
    """Decides who goes on next.

    Args:
        clock: measures and moves the time.

    Attributes:
        hurried: waits are not waited for (after EOF): every timer is ripe at once, in order.
        wake: called when there is something to do; the driver puts its alarm here.
        rested: called when there is nothing to do for now; the host writes out what its taps hold.
    """

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.hurried = False
        self.wake: Callable[[], None] = _nobody
        self.rested: Callable[[], None] = _nobody
        self._births = 0
        self._timers: list[Timer] = []
        self._held: list[Timer] = []  # endless repetitions at speed 0: they wait for `advance`
        self._timeouts: list[Timer] = []  # real time: `due` is not used for them
        self._ready: deque[Callable[[], None]] = deque()
        self._starved: list[tuple[Callable[[], int], Callable[[], None]]] = []
        self._settling: dict[Hashable, Callable[[], None]] = {}

    # --- for those who play

    def soon(self, call: Callable[[], None]) -> None:
        """The call is made in this round, behind what is ready already."""
        self._ready.append(call)
        self.wake()

    def after(self, wait: Micros, call: Callable[[], None], *, endless: bool = False) -> Timer:
        """The call is made after a logical wait, which `speed` divides.

        Args:
            wait: microseconds of stage time.
            call: what to do then.
            endless: it belongs to a repetition without end, which at speed 0 would never let anybody rest.
        """
        timer = self._timer(self.clock.stage() + wait, self.clock.seconds(wait), call)
        heappush(self._held if endless and self.clock.speed == 0 else self._timers, timer)
        self.wake()
        return timer

    def timeout(self, seconds: float, call: Callable[[], None]) -> Timer:
        """The call is made after real seconds, whatever the speed."""
        timer = self._timer(round(self.clock.monotonic() * SECOND + seconds * SECOND), seconds, call)
        heappush(self._timeouts, timer)
        self.wake()
        return timer

    def _timer(self, due: Micros, seconds: float, call: Callable[[], None]) -> Timer:
        self._births += 1
        return Timer(due, self.clock.monotonic() + seconds, self._births, call)

    def with_room(self, room: Callable[[], int], call: Callable[[], None]) -> None:
        """The call is made as soon as `room()` is above zero; whoever makes room calls `wake`."""
        self._starved.append((room, call))

    def settled(self, key: Hashable, call: Callable[[], None]) -> None:
        """The call is made when nothing is ready any more in this round, once for a key."""
        self._settling[key] = call

    # --- for the driver

    def pump(self) -> None:
        """Runs everything that can go on without time passing."""
        while True:
            while self._ready:
                self._ready.popleft()()
            if self._feed():
                continue
            if not self._settling:
                return
            settling, self._settling = self._settling, {}
            for call in settling.values():
                call()

    def _feed(self) -> bool:
        """Readies those for whom there is room again, in the order in which they ran out of it."""
        waiting, self._starved = self._starved, []
        for room, call in waiting:
            if room() > 0:
                self._ready.append(call)
            else:
                self._starved.append((room, call))
        return bool(self._ready)

    def fire(self) -> bool:
        """Fires the next timer that is ripe.

        Returns:
            Whether one fired; then there may be something to pump.
        """
        now = self.clock.monotonic()
        late = _head(self._timeouts)
        if late is not None and late.at <= now:
            self._call(heappop(self._timeouts), counts=False)
            return True
        timer = _head(self._timers)
        if timer is None or not (self.at_once or timer.at <= now):
            return False
        self._call(heappop(self._timers))
        return True

    @property
    def at_once(self) -> bool:
        """Whether timers are ripe as soon as nothing else is to do."""
        return self.hurried or self.clock.speed == 0

    def _call(self, timer: Timer, *, counts: bool = True) -> None:
        call, timer.call = timer.call, None
        if counts:
            self.clock.reached(timer.due)
        if call is not None:
            call()

    def deadline(self) -> float:
        """When, in seconds of the monotonic clock, the driver has to come back; `inf`: not before `wake`."""
        late = _head(self._timeouts)
        timer = _head(self._timers)
        at = math.inf if timer is None else -math.inf if self.at_once else timer.at
        return at if late is None else min(at, late.at)

    def advance(self, seconds: float) -> None:
        """Moves logical time on and fires, in order, all that becomes due on the way, endless repetitions too.

        Args:
            seconds: of logical time.
        """
        target = self.clock.stage() + round(seconds * SECOND)
        self.pump()
        while (heap := self._earlier()) is not None and heap[0].due <= target:
            timer = heappop(heap)
            self.clock.skip(max(timer.due - self.clock.stage(), 0))
            self._call(timer)
            self.pump()
        self.clock.skip(max(target - self.clock.stage(), 0))
        now = self.clock.monotonic()
        for timer in self._timers:
            timer.at = min(timer.at, now + self.clock.seconds(max(timer.due - self.clock.stage(), 0)))
        self.wake()

    def _earlier(self) -> list[Timer] | None:
        """The heap whose head is due first."""
        heads = [(head, heap) for heap in (self._timers, self._held) if (head := _head(heap)) is not None]
        return min(heads, key=lambda pair: pair[0])[1] if heads else None


def _head(heap: list[Timer]) -> Timer | None:
    """The first timer that was not called off."""
    while heap and heap[0].call is None:
        heappop(heap)
    return heap[0] if heap else None


def _nobody() -> None:
    """Whoever pumps by hand needs neither alarm nor rest."""
