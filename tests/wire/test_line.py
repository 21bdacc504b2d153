"""One outgoing channel: order, few writes, bounded memory, and what becomes of what cannot leave."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from mockagent.acp.stdio import LineFramer
from mockagent.faults.interface import Life
from mockagent.message import Fate
from mockagent.net.channel import Bytes, Cut
from mockagent.wire.line import FLOOD_BYTES, QUEUE_BYTES, QUEUE_MESSAGES, WRITE_BYTES, Line


@asynccontextmanager
async def running(hand: Any, shelf: Any) -> AsyncIterator[Line]:
    """A line whose writer runs."""
    line = Line(hand.peer, LineFramer(), hand, shelf)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(line.run)
        await wait_all_tasks_blocked()
        yield line
        nursery.cancel_scope.cancel()


async def test_what_is_put_in_at_once_leaves_in_one_write_and_in_order(hand: Any, shelf: Any) -> None:
    async with running(hand, shelf) as line:
        line.put(hand.message(0))
        line.put_burst(hand.burst(*range(1, 500)))
        line.put(hand.message(500))
        assert shelf.writes == []
        await line.drained()
        assert len(shelf.writes) == 1
        assert shelf.lines == list(range(501))


async def test_a_lone_message_leaves_as_soon_as_its_sender_has_returned(
    hand: Any, shelf: Any, autojump_clock: MockClock
) -> None:
    async with running(hand, shelf) as line:
        start = trio.current_time()
        line.put(hand.message(1))
        await wait_all_tasks_blocked()
        assert shelf.lines == [1]
        assert trio.current_time() == start


async def test_a_write_has_a_bounded_size(hand: Any, shelf: Any) -> None:
    async with running(hand, shelf) as line:
        for _ in range(9):
            line.put(hand.message(0, raw=b'{"n":0}' + b" " * (WRITE_BYTES // 3)))
        await line.drained()
        assert len(shelf.writes) == 3
        assert all(len(data) <= WRITE_BYTES * 4 // 3 + 100 for data in shelf.writes)


async def test_room_ends_with_messages_or_bytes_and_comes_back_when_they_have_left(hand: Any, shelf: Any) -> None:
    shelf.open = trio.Event()
    async with running(hand, shelf) as line:
        assert line.room == QUEUE_MESSAGES
        line.put_burst(hand.burst(*range(QUEUE_MESSAGES)))
        assert line.room == 0
        await wait_all_tasks_blocked()
        assert line.room == 0  # being written is not written
        wakes = hand.wakes
        shelf.open.set()
        await line.drained()
        assert line.room == QUEUE_MESSAGES
        assert hand.wakes > wakes
        shelf.open = trio.Event()
        line.put(hand.message(0, raw=b" " * QUEUE_BYTES))
        assert line.room == 0
        shelf.open.set()
        await line.drained()
        assert line.room == QUEUE_MESSAGES


async def test_a_peer_whose_answers_pile_up_is_not_read_from(hand: Any, shelf: Any) -> None:
    shelf.open = trio.Event()
    async with running(hand, shelf) as line:
        line.put(hand.message(0, raw=b" " * FLOOD_BYTES))
        await line.with_room()
        line.put(hand.message(0, raw=b" "))
        with trio.move_on_after(0) as scope:
            await line.with_room()
        assert scope.cancelled_caught
        shelf.open.set()
        await line.with_room()


async def test_taps_see_a_message_before_it_is_written(hand: Any, shelf: Any) -> None:
    shelf.open = trio.Event()
    async with running(hand, shelf) as line:
        line.put(hand.message(1))
        line.put_burst(hand.burst(2, 3))
        await wait_all_tasks_blocked()
        assert shelf.writes == []
        assert hand.notes.fates == [("update:x", Fate.INTACT)] * 3


async def test_what_a_fault_has_changed_is_seen_as_damaged_and_framed_as_it_says(hand: Any, shelf: Any) -> None:
    hand.faults.frame = lambda data: (Bytes(data[:3], alone=True), Bytes(data[3:]))
    async with running(hand, shelf) as line:
        line.put(hand.message(1, plan=(("split", 3),), damaged=("split",)))
        line.put(hand.message(2))
        await line.drained()
        assert shelf.writes == [b'{"n', b'":1}\n{"n":2}\n']
        assert [fate for _, fate in hand.notes.fates] == [Fate.DAMAGED, Fate.INTACT]


async def test_a_broken_channel_loses_what_is_queued_and_the_taps_are_told(hand: Any, shelf: Any) -> None:
    shelf.open = trio.Event()
    async with running(hand, shelf) as line:
        line.put_burst(hand.burst(1, 2))
        await wait_all_tasks_blocked()
        line.put(hand.message(3, "reply:x"))
        line.put_burst(hand.burst(4, 5))
        shelf.broken = True
        shelf.open.set()
        await line.drained()
        assert hand.notes.of("lost") == [{"count": 2}]
        assert hand.notes.fates[2:] == [
            ("reply:x", Fate.UNSENT),
            ("update:x", Fate.UNSENT),
            ("update:x", Fate.UNSENT),
        ]
        assert line.broken
        assert not line.ended


async def test_a_broken_line_takes_anything_and_keeps_nothing(hand: Any, shelf: Any) -> None:
    shelf.broken = True
    async with running(hand, shelf) as line:
        line.put(hand.message(1))
        await line.drained()
        for _ in range(3):
            line.put(hand.message(2))
            line.put_burst(hand.burst(3))
        assert line.room == QUEUE_MESSAGES
        assert line.idle
        assert [fate for _, fate in hand.notes.fates[1:]] == [Fate.UNSENT] * 6


async def test_a_line_that_is_cut_ends_behind_what_was_put_in(hand: Any, shelf: Any) -> None:
    async with running(hand, shelf) as line:
        line.put(hand.message(1))
        line.cut(Cut("reset"))
        line.put(hand.message(2))
        await line.drained()
        assert shelf.lines == [1]
        assert shelf.cuts == [Cut("reset")]
        assert (line.ended, line.broken) == (True, True)
        assert hand.notes.fates == [("update:x", Fate.INTACT), ("update:x", Fate.UNSENT)]


async def test_what_happens_to_the_process_happens_behind_what_was_put_in(hand: Any, shelf: Any) -> None:
    shelf.open = trio.Event()
    async with running(hand, shelf) as line:
        line.put(hand.message(1))
        line.put_life(Life(exit=1, stall_write=None))
        line.put(hand.message(2))
        await wait_all_tasks_blocked()
        assert hand.lives == []
        shelf.open.set()
        await line.drained()
        assert [life.exit for life in hand.lives] == [1]
        assert shelf.writes == [b'{"n":1}\n', b'{"n":2}\n']


async def test_a_stall_holds_up_what_comes_behind_it(hand: Any, shelf: Any, autojump_clock: MockClock) -> None:
    async with running(hand, shelf) as line:
        line.put(hand.message(1))
        line.put_life(Life(stall_write=5.0))
        line.put(hand.message(2))
        await trio.sleep(4.9)
        assert shelf.lines == [1]
        await trio.sleep(0.2)
        assert shelf.lines == [1, 2]


async def test_a_barrier_holds_back_what_comes_behind_it_until_it_opens(hand: Any, shelf: Any) -> None:
    async with running(hand, shelf) as line:
        line.put(hand.message(1))
        line.hold_back(2_000_000)
        line.put(hand.message(2))
        line.hold_back(1_000_000)
        line.put(hand.message(3))
        await wait_all_tasks_blocked()
        assert shelf.lines == [1]
        [(first, open_first), (_, open_second)] = hand.waits
        assert first == 2_000_000
        open_second()
        await wait_all_tasks_blocked()
        assert shelf.lines == [1]
        open_first()
        await wait_all_tasks_blocked()
        assert shelf.lines == [1, 2, 3]


@pytest.mark.parametrize("count", [0, 1, 3])
async def test_cancelling_the_writer_loses_nothing_silently(hand: Any, shelf: Any, count: int) -> None:
    shelf.open = trio.Event()
    async with running(hand, shelf) as line:
        for number in range(count):
            line.put(hand.message(number))
        await wait_all_tasks_blocked()
        line.put(hand.message(9, "reply:x"))
    lost = sum(detail["count"] for detail in hand.notes.of("lost"))
    unsent = sum(fate is Fate.UNSENT for _, fate in hand.notes.fates)
    assert lost + unsent == count + 1
    assert shelf.writes == []


async def test_a_line_without_a_channel_keeps_everything_until_it_has_one(hand: Any, shelf: Any) -> None:
    line = Line(hand.peer, LineFramer(), hand)
    line.put(hand.message(1))
    assert line.room == QUEUE_MESSAGES - 1
    line.open(shelf)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(line.run)
        await line.drained()
        nursery.cancel_scope.cancel()
    assert shelf.lines == [1]
