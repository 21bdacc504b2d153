"""The task that moves the stage: it pumps, waits for the next deadline or an alarm, and fires timers.

The only place in `script` that knows trio. It never looks at what it moves.
"""

from __future__ import annotations

import math

import trio

# Public under trio.testing only, whose import takes half as long as all of trio's.
from trio._core import wait_all_tasks_blocked  # type: ignore[attr-defined]

from mockagent.script.stage import Stage

_ROUND = 100
"""Timers fired before others get their turn: a repetition may never run out of them."""


async def drive(stage: Stage) -> None:
    """Moves a stage for ever; ends only by being cancelled.

    Args:
        stage: the stage; its `wake` belongs to this task from now on.
    """
    alarm = trio.Event()

    def wake() -> None:
        alarm.set()

    stage.wake = wake
    while True:
        stage.pump()
        deadline = stage.deadline()
        if deadline == -math.inf:
            # Waits take no time, but input that is there already comes first.
            alarm = trio.Event()
            await wait_all_tasks_blocked()
            if not alarm.is_set():
                stage.fire()
            continue
        if alarm.is_set():
            alarm = trio.Event()
        stage.rested()
        with trio.move_on_at(deadline):
            await alarm.wait()
        for _ in range(_ROUND):
            if not stage.fire():
                break
            stage.pump()
