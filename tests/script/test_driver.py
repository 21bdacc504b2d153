"""The task that moves the stage: it sleeps when there is nothing to do, and never keeps others from running."""

from __future__ import annotations

import math
from functools import partial

import trio
from trio.testing import MockClock

from mockagent.scenario.model import ClockRules
from mockagent.script.driver import drive
from mockagent.script.stage import Stage
from mockagent.world.clock import SECOND, Clock


def stage_of(**rules: float | None) -> Stage:
    return Stage(Clock(ClockRules(**rules), monotonic=trio.current_time))  # type: ignore[arg-type]


async def test_timers_fire_at_their_time(autojump_clock: MockClock) -> None:
    stage = stage_of()
    at: list[float] = []
    start = trio.current_time()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(drive, stage)
        for wait in (3, 1, 2):
            stage.after(wait * SECOND, lambda: at.append(round(trio.current_time() - start, 3)))
        await trio.sleep(10)
        nursery.cancel_scope.cancel()
    assert at == [1, 2, 3]


async def test_what_is_put_on_the_stage_while_the_driver_sleeps_wakes_it(autojump_clock: MockClock) -> None:
    stage = stage_of()
    heard = trio.Event()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(drive, stage)
        await trio.testing.wait_all_tasks_blocked()
        stage.soon(heard.set)
        await heard.wait()
        nursery.cancel_scope.cancel()


async def test_at_speed_zero_input_that_is_there_comes_before_timers(autojump_clock: MockClock) -> None:
    stage = stage_of(speed=0)
    order: list[str] = []
    send, receive = trio.open_memory_channel[str](10)

    async def reader() -> None:
        async for word in receive:
            order.append(word)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(drive, stage)
        nursery.start_soon(reader)
        stage.after(0, partial(order.append, "timer"))
        for word in ("one", "two", "three"):
            send.send_nowait(word)
        await trio.testing.wait_all_tasks_blocked()
        await trio.testing.wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    assert order == ["one", "two", "three", "timer"]


async def test_timers_without_end_leave_room_for_others() -> None:
    """An event loop whose driver always has a ripe timer still runs its other tasks."""
    stage = stage_of()
    fired = [0]

    def again() -> None:
        fired[0] += 1
        stage.after(0, again)

    async with trio.open_nursery() as nursery:
        stage.after(0, again)
        nursery.start_soon(drive, stage)
        for _ in range(20):
            await trio.lowlevel.checkpoint()
        nursery.cancel_scope.cancel()
    assert fired[0] > 0


async def test_it_tells_when_it_rests_and_does_not_spin(autojump_clock: MockClock) -> None:
    stage = stage_of()
    rests = [0]

    def rested() -> None:
        rests[0] += 1

    stage.rested = rested
    async with trio.open_nursery() as nursery:
        nursery.start_soon(drive, stage)
        await trio.testing.wait_all_tasks_blocked()
        before = rests[0]
        await trio.sleep(100)
        assert before == rests[0] == 1
        assert stage.deadline() == math.inf
        nursery.cancel_scope.cancel()
