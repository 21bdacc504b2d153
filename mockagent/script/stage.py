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

Call = Callable[[], None]
Room = Callable[[], int]

_STEPS = 2000
"""Steps without a pause, after which others get their turn."""


class Timer:
    """A call that is due at a time: `due` in stage time orders it, `at` in monotonic seconds says when to wake up."""

    __slots__ = ("at", "birth", "call", "due", "endless", "room")

    def __init__(self, due: Micros, at: float, birth: int, call: Call, room: Room | None, endless: bool) -> None:
        self.due = due
        self.at = at
        self.birth = birth
        self.call: Call | None = call
        self.room = room
        self.endless = endless

    def cancel(self) -> None:
        """The call will not be made; doing it twice is harmless."""
        self.call = None

    def __lt__(self, other: Timer) -> bool:
        return (self.due, self.birth) < (other.due, other.birth)


class Stage:
    """Decides who goes on next.

    What follows from a timer happens, for the stage, at the time for which that was due, however late it fired; and
    whoever waited for room goes on at the time at which it ran out of it. So neither a slow machine nor a slow reader
    changes who comes first.

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
        self._moment: Micros | None = None  # stage time of the call that is being made
        self._timers: list[Timer] = []
        self._held: list[Timer] = []  # endless repetitions while waits take no time: they wait for `advance`
        self._breathing: list[tuple[Micros, Call]] = []
        self._steps = 0  # since the last pump began
        self._aside: list[Timer] = []  # their outputs have no room: time stands still for them
        self._timeouts: list[Timer] = []  # real time: `due` is not used for them
        self._ready: deque[tuple[Micros, Call]] = deque()
        self._starved: list[tuple[Room, Micros, Call]] = []
        self._settling: dict[Hashable, Call] = {}

    # --- for those who play

    @property
    def moment(self) -> Micros:
        """Stage time as it is for whoever is being called."""
        return self.clock.stage() if self._moment is None else self._moment

    def soon(self, call: Call) -> None:
        """The call is made in this round, behind what is ready already."""
        self._ready.append((self.moment, call))
        self.wake()

    def after(self, wait: Micros, call: Call, *, endless: bool = False, room: Room | None = None) -> Timer:
        """The call is made after a logical wait, which `speed` divides.

        Args:
            wait: microseconds of stage time.
            call: what to do then.
            endless: it belongs to a repetition without end; where waits take no time it would let nobody rest.
            room: the call is not made before this is above zero; whoever makes room calls `wake`.
        """
        late = 0 if self.clock.counted else self.clock.stage() - self.moment
        timer = self._timer(self.moment + wait, self.clock.seconds(max(wait - late, 0)), call, room, endless)
        heappush(self._timers, timer)
        self.wake()
        return timer

    def timeout(self, seconds: float, call: Call) -> Timer:
        """The call is made after real seconds, whatever the speed."""
        timer = self._timer(round(self.clock.monotonic() * SECOND + seconds * SECOND), seconds, call)
        heappush(self._timeouts, timer)
        self.wake()
        return timer

    def _timer(self, due: Micros, seconds: float, call: Call, room: Room | None = None, endless: bool = False) -> Timer:
        self._births += 1
        return Timer(due, self.clock.monotonic() + seconds, self._births, call, room, endless)

    def with_room(self, room: Room, call: Call) -> None:
        """The call is made as soon as `room()` is above zero; whoever makes room calls `wake`."""
        self._starved.append((room, self.moment, call))

    def settled(self, key: Hashable, call: Call) -> None:
        """The call is made when nothing is ready any more in this round, once for a key."""
        self._settling[key] = call

    def tired(self) -> bool:
        """Counts a step. Whether there have been so many without a pause that others have to get their turn: to an
        output that takes everything (nobody is there any more) a script could play for ever."""
        self._steps += 1
        return self._steps > _STEPS

    def breathe(self, call: Call) -> None:
        """The call is made when others have had their turn."""
        self._breathing.append((self.moment, call))

    # --- for the driver

    def pump(self) -> None:
        """Runs everything that can go on without time passing, but for those who have to take a breath."""
        self._steps = 0
        self._ready.extend(self._breathing)
        self._breathing.clear()
        while True:
            while self._ready:
                self._make(*self._ready.popleft())
            if self._feed():
                continue
            if not self._settling:
                return
            settling, self._settling = self._settling, {}
            for call in settling.values():
                call()

    def _make(self, moment: Micros | None, call: Call) -> None:
        self._moment = moment
        try:
            call()
        finally:
            self._moment = None

    def _feed(self) -> bool:
        """Readies those for whom there is room again, in the order in which they ran out of it."""
        for timer in [timer for timer in self._aside if timer.room is None or timer.room() > 0]:
            self._aside.remove(timer)
            heappush(self._timers, timer)
        waiting, self._starved = self._starved, []
        for room, moment, call in waiting:
            if room() > 0:
                self._ready.append((moment, call))
            else:
                self._starved.append((room, moment, call))
        return bool(self._ready)

    def fire(self) -> bool:
        """Fires the next timer that is ripe.

        Returns:
            Whether one fired; then there may be something to pump.
        """
        if self._breathing:
            return False  # it is their turn, and time has not passed for them
        now = self.clock.monotonic()
        late = self._head(self._timeouts)
        if late is not None and late.at <= now:
            self._fire(heappop(self._timeouts), None)
            return True
        timer = self._head(self._timers)
        if timer is None or not (self.at_once or timer.at <= now):
            return False
        self._fire(heappop(self._timers), timer.due)
        return True

    @property
    def at_once(self) -> bool:
        """Whether timers are ripe as soon as nothing else is to do."""
        return self.hurried or self.clock.speed == 0

    @property
    def moving(self) -> bool:
        """Whether something would go on by itself, without waiting for time or for anybody."""
        return bool(self._ready) or self.deadline() == -math.inf

    def _fire(self, timer: Timer, moment: Micros | None) -> None:
        call, timer.call = timer.call, None
        if moment is not None:
            self.clock.reached(moment)
        if call is not None:
            self._make(moment, call)

    def _head(self, heap: list[Timer]) -> Timer | None:
        """The first timer that may fire; those that may not are put where they belong."""
        while heap:
            timer = heap[0]
            if timer.call is None:
                heappop(heap)
            elif timer.endless and self.at_once and heap is self._timers:
                heappush(self._held, heappop(heap))
            elif timer.room is not None and timer.room() <= 0:
                self._aside.append(heappop(heap))
            else:
                return timer
        return None

    def deadline(self) -> float:
        """When, in seconds of the monotonic clock, the driver has to come back; `inf`: not before `wake`."""
        if self._breathing:
            return -math.inf
        late = self._head(self._timeouts)
        timer = self._head(self._timers)
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
            self._fire(timer, timer.due)
            self.pump()
        self.clock.skip(max(target - self.clock.stage(), 0))
        now = self.clock.monotonic()
        for timer in [*self._timers, *self._aside]:
            timer.at = min(timer.at, now + self.clock.seconds(max(timer.due - self.clock.stage(), 0)))
        self.wake()

    def clear(self) -> None:
        """Ends all waits: what was to be done later is done now, in order, but for endless repetitions and time-outs.

        Whoever plays has to be stopped before; what is left over are messages that were held back.
        """
        self.pump()
        for timer in sorted([*self._timers, *self._aside]):
            if not timer.endless and timer.call is not None:
                timer.call()
        self.pump()
        for queue in (self._timers, self._held, self._aside, self._timeouts, self._starved, self._breathing):
            queue.clear()
        self.hurried = False
        self.wake()

    def _earlier(self) -> list[Timer] | None:
        """The heap whose head is due first."""
        heads = [(head, heap) for heap in (self._timers, self._held) if (head := self._head(heap)) is not None]
        return min(heads, key=lambda pair: pair[0])[1] if heads else None


def _nobody() -> None:
    """Whoever pumps by hand needs neither alarm nor rest."""
