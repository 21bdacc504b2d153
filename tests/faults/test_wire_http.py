"""Faults on ACP's messages over Streamable HTTP: order, time and life. Shapes of bytes are `tests/acp`'s."""

from __future__ import annotations

from typing import Any

import pytest
import trio

from tests import network
from tests.network import CWD, Http
from tests.network import said as prompted

HEAD = "legality: violation\nsessions: {auto_title: null}\n"
TALK = HEAD + "turns: [{steps: [{say: one}, {say: two}, {say: three}]}]\n"


def serving(scenario: str) -> Any:
    """A server whose waits take the time of the test's clock, which jumps."""
    return network.serving(scenario, speed=None, patience=3600)


async def begun(client: Http) -> str:
    """A session, with its stream open, after the introduction."""
    await client.greet()
    return await client.new()


async def test_order_and_copies(autojump_clock: Any) -> None:
    faults = """
faults:
  - {at: say, when: {nth: 1}, hold: {until: 5s}}
  - {at: say, when: {nth: 2}, copies: 2, play_before: [{say: before}], play_after: [{say: after}]}
  - {at: say, when: {nth: 3}, delay: 3s}
"""
    async with serving(TALK + faults) as mock, mock.http() as client:
        session = await begun(client)
        start = trio.current_time()
        await client.prompt(session)
        assert client.words() == "beforetwotwoafterthree"
        assert trio.current_time() - start == 3
        await client.when(lambda: client.words().endswith("one"))
        assert trio.current_time() - start == 5


async def test_two_replies_come_in_reverse_order(autojump_clock: Any) -> None:
    async with serving(HEAD + "faults: [{at: create, when: {nth: 1}, hold: reply}]") as mock, mock.http() as client:
        await client.greet()
        params = {"cwd": CWD, "mcpServers": []}
        first, second = await client.ask("session/new", params), await client.ask("session/new", params)
        await client.reply(first)
        ids = [message["id"] for message in client.seen if "sessionId" in message.get("result", {})]
        assert ids == [second, first]


async def test_a_drip_and_a_pause_on_a_stream(autojump_clock: Any) -> None:
    faults = (
        "faults: [{at: say, when: {nth: 1}, split: {parts: 3, pause: 2s}}, {at: say, when: {nth: 2}, rate: 100B/s}]"
    )
    async with serving(TALK + faults) as mock, mock.http() as client:
        session = await begun(client)
        start = trio.current_time()
        await client.prompt(session)
        assert client.words() == "onetwothree"
        assert trio.current_time() - start > 5


async def test_a_stalled_stream_goes_on_and_others_do_not_wait(autojump_clock: Any) -> None:
    faults = "faults: [{at: say, when: {nth: 1, per: process}, stall: {write: 10s}}]"
    async with serving(TALK + faults) as mock, mock.http() as client:
        one, other = await begun(client), await client.new()
        start = trio.current_time()
        id = await client.ask("session/prompt", prompted(one, "x"))
        await client.when(lambda: client.words() == "one")
        await client.prompt(other)
        assert trio.current_time() == start
        await client.reply(id)
        assert trio.current_time() - start == 10


async def test_points_in_life_fire(autojump_clock: Any) -> None:
    points = ("connected", "session_opened", "session_listed", "turn_started", "turn_ended", "idle", "closed", "ping")
    faults = "faults:\n" + "".join(f"  - {{at: {point}, when: {{transport: http}}, stderr: x}}\n" for point in points)
    async with serving(TALK + faults) as mock:
        async with mock.http() as client:
            session = await begun(client)
            await client.prompt(session)
            await client.call("session/list")
            await trio.sleep(30)
            await client.web.delete(client.url, headers=client.headers())
            await mock.notes.until("closed")
        fired = {detail["on"] for detail in mock.notes.of("fault")}
        assert fired == set(points)


@pytest.mark.parametrize("at", ["turn_ended", "reply:session/prompt"])
async def test_a_disconnect_at_the_end_of_a_turn_comes_behind_its_reply(autojump_clock: Any, at: str) -> None:
    async with serving(TALK + f"faults: [{{at: '{at}', disconnect: reset}}]") as mock, mock.http() as client:
        session = await begun(client)
        reply = await client.prompt(session)
        assert reply["result"]["stopReason"] == "end_turn"
        await client.when(lambda: session in client.ended)
        assert client.words() == "onetwothree"


async def test_a_reply_and_what_was_said_before_leave_together(autojump_clock: Any) -> None:
    pace = "pace: {rate: 2/s, chunk: 1}\n" + HEAD + "turns: [{steps: [{say: abcdef}]}]\n"
    async with serving(pace + 'faults: [{at: "reply:session/prompt", coalesce: 3}]') as mock, mock.http() as client:
        session = await begun(client)
        id = await client.ask("session/prompt", prompted(session, "x"))
        await client.when(lambda: "c" in client.words())
        early = trio.current_time(), client.words()
        await client.reply(id)
        assert early[1] == "abc"
        assert client.words() == "abcdef"
        assert trio.current_time() - early[0] == 0.5
