"""Comments as a sign of life: asked for in the scenario, they keep a silent stream awake and reach no ACP client."""

from __future__ import annotations

HEARTBEAT = """
schedule:
  - event: turn_started
    every: 15s
    steps: [{send: ": keep-alive\\n\\n", when: {protocol: aap}}]
turns: [{steps: [{say: a}, {hang: true}]}]
"""


async def test_a_comment_comes_into_a_silent_stream_as_often_as_asked(serve):
    server = await serve(HEARTBEAT)
    async with server.streaming(await server.create(), "hi") as stream:
        await stream.until("text_delta")
        server.host.stage.advance(31)
        data = b""
        while data.count(b": keep-alive\n\n") < 2:
            data += await stream.socket.receive_some()
        assert b"event" not in data


async def test_behind_the_end_of_a_turn_no_comment_follows(serve):
    server = await serve(HEARTBEAT.replace(", {hang: true}", ""))
    events = await server.events(await server.create(), "hi")
    server.host.stage.advance(60)
    assert [name for name, _ in events] == ["turn_start", "text_delta", "turn_stop"]
    assert not [message for message in server.seen.data if message.kind == "raw"]
