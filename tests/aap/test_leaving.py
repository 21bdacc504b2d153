"""A client that goes in the middle: its turn ends soon, whatever it plays, and everybody else is served meanwhile."""

from __future__ import annotations

import h11
import pytest
import trio

ENDLESS = (
    "turns: [{when: {prompt: hi}, steps: [{say: hi}]}, {steps: [{repeat: {times: 1000000000, steps: [{say: x}]}}]}]"
)


async def test_a_turn_that_never_waits_ends_when_its_client_has_gone(serve):
    server = await serve(ENDLESS)
    session = await server.create()
    with trio.fail_after(30):
        async with server.streaming(session, "go") as stream:
            await stream.until("text_delta")
        while (reply := await server.turn(session, "hi")).status_code == 409:
            pass
    assert reply.json()["messages"][0]["content"] == "hi"
    assert server.seen.noted("left")


async def test_a_client_that_does_not_read_holds_up_nobody(serve):
    server = await serve(ENDLESS)
    with trio.fail_after(30):
        async with server.streaming(await server.create(), "go"):
            for _ in range(3):
                other = await server.create()
                assert (await server.turn(other, "hi")).json()["messages"][0]["content"] == "hi"


async def test_a_client_that_ends_its_side_has_gone_and_gets_no_end_that_is_none(serve):
    server = await serve("turns: [{steps: [{say: a}, {hang: true}]}]")
    with trio.fail_after(30):
        async with server.streaming(await server.create(), "go") as stream:
            await stream.until("text_delta")
            await stream.socket.send_eof()
            with pytest.raises(h11.RemoteProtocolError, match="incomplete"):
                await stream.next()
