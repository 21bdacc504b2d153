"""The operations of one write: what is joined, what waits, where it stops."""

from __future__ import annotations

import math

import pytest
import trio

from mockagent.net.carry import carry_out
from mockagent.net.channel import Bytes, Cut, Op, Pause, Rate


class Sends:
    def __init__(self) -> None:
        self.data: list[bytes] = []
        self.at: list[float] = []

    async def __call__(self, data: bytes) -> None:
        await trio.lowlevel.checkpoint()
        self.data.append(data)
        self.at.append(trio.current_time())


@pytest.mark.parametrize(
    ("ops", "sends"),
    [
        ([], []),
        ([Bytes(b"")], []),
        ([Bytes(b"a")], [b"a"]),
        ([Bytes(b"a"), Bytes(b"b")], [b"ab"]),
        ([Bytes(b"a"), Bytes(b"b", alone=True), Bytes(b"c"), Bytes(b"d")], [b"a", b"b", b"cd"]),
        ([Bytes(b"a"), Bytes(b"", alone=True), Bytes(b"b")], [b"a", b"b"]),
        ([Bytes(b"a"), Pause(0), Bytes(b"b")], [b"a", b"b"]),
        ([Bytes(b"a"), Cut(), Bytes(b"b")], [b"a"]),
    ],
)
async def test_neighbours_leave_in_one_send_unless_alone(ops: list[Op], sends: list[bytes]) -> None:
    send = Sends()
    await carry_out(ops, send)
    assert send.data == sends


async def test_the_first_cut_is_handed_back() -> None:
    assert await carry_out([Bytes(b"a"), Cut("reset"), Cut("half")], Sends()) == Cut("reset")
    assert await carry_out([Bytes(b"a")], Sends()) is None


async def test_a_pause_holds_back_what_follows(autojump_clock: trio.abc.Clock) -> None:
    send = Sends()
    begin = trio.current_time()
    await carry_out([Bytes(b"a"), Pause(2.5), Bytes(b"b")], send)
    assert [at - begin for at in send.at] == [0, 2.5]


async def test_an_endless_pause_never_ends(autojump_clock: trio.abc.Clock) -> None:
    send = Sends()
    with trio.move_on_after(10**6) as scope:
        await carry_out([Bytes(b"a"), Pause(math.inf), Bytes(b"b")], send)
    assert scope.cancelled_caught
    assert send.data == [b"a"]


@pytest.mark.parametrize("rate", [1, 7, 100, 10**6])
async def test_a_rate_is_kept_and_loses_nothing(rate: int, autojump_clock: trio.abc.Clock) -> None:
    send = Sends()
    data = bytes(range(200))
    begin = trio.current_time()
    await carry_out([Rate(data, rate)], send)
    assert b"".join(send.data) == data
    assert trio.current_time() - begin == pytest.approx(len(data) / rate)


async def test_a_rate_of_nothing_stalls(autojump_clock: trio.abc.Clock) -> None:
    send = Sends()
    with trio.move_on_after(1000) as scope:
        await carry_out([Rate(b"a", 0)], send)
    assert scope.cancelled_caught
    assert send.data == []
