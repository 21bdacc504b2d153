"""Frames and endings of a WebSocket, looked at from the other end of a real socket."""

from __future__ import annotations

import json
from typing import Any

import pytest
import trio

from tests.faults.wire import RESET, Client, Frame, Socket, kinds, said, serving

TALK = "sessions: {auto_title: null}\nturns: [{steps: [{say: one}, {say: 'zwö'}, {say: three}]}]\n"


def socket(client: Client) -> Socket:
    assert isinstance(client.link, Socket)
    return client.link


async def frames(client: Client) -> list[Frame]:
    """The frames of one turn."""
    session = await client.new()
    before = len(socket(client).frames)
    await client.turn(session)
    return socket(client).frames[before:]


# --- frames


async def test_without_a_fault_every_message_is_one_text_frame() -> None:
    async with serving(TALK) as server:
        client = await server.client()
        assert [(frame.opcode, frame.fin) for frame in await frames(client)] == [(1, True)] * 4


async def test_a_binary_frame() -> None:
    async with serving(TALK + "faults: [{at: say, when: {nth: 2}, binary: true}]") as server:
        assert [frame.opcode for frame in await frames(await server.client())] == [1, 2, 1, 1]


@pytest.mark.parametrize(("newline", "end"), [("crlf", b"\r\n"), ("cr", b"\r"), ("none", b"}"), ("double", b"\n\n")])
async def test_a_line_end_inside_the_frame(newline: str, end: bytes) -> None:
    async with serving(TALK + f"faults: [{{at: say, newline: {newline}}}]") as server:
        got = await frames(await server.client())
        assert [frame.payload.endswith(end) for frame in got[:3]] == [True] * 3


async def test_a_message_in_several_frames_with_pauses_between(autojump_clock: Any) -> None:
    fault = "{at: say, when: {nth: 2}, split: {at: utf8, into: frames, pause: 3s}}"
    async with serving(TALK + f"faults: [{fault}]") as server:
        client = await server.client()
        session = await client.new()
        await client.prompt(session)
        assert said([await client.next()]) == ["one"]
        start = trio.current_time()
        head = await socket(client).frame()
        assert head is not None
        assert (head.opcode, head.fin, head.payload[-1:]) == (1, False, b"\xc3")
        assert trio.current_time() == start
        tail = await socket(client).frame()
        assert tail is not None
        assert (tail.opcode, tail.fin, tail.payload[:1]) == (0, True, b"\xb6")
        assert trio.current_time() - start == 3
        assert said([json.loads(head.payload + tail.payload)]) == ["zwö"]


async def test_a_split_into_messages_makes_messages_that_are_no_json() -> None:
    async with serving(TALK + "faults: [{at: say, when: {nth: 1}, split: {parts: 3, into: messages}}]") as server:
        got = await frames(await server.client())
        assert [(frame.opcode, frame.fin) for frame in got[:3]] == [(1, True)] * 3
        assert said([json.loads(b"".join(frame.payload for frame in got[:3]))]) == ["one"]


async def test_a_frame_in_two_writes_is_still_one_frame(autojump_clock: Any) -> None:
    async with serving(TALK + "faults: [{at: say, when: {nth: 1}, split: {at: [1, 20], pause: 2s}}]") as server:
        client = await server.client()
        session = await client.new()
        start = trio.current_time()
        before = len(client.raw.pieces)
        await client.prompt(session)
        assert said([await client.next()]) == ["one"]
        assert [(when - start, len(data)) for when, data in client.raw.pieces[before:]][:2] == [(0, 1), (2, 19)]


async def test_bytes_and_truncation_are_inside_the_frame() -> None:
    faults = """
faults:
  - {at: say, when: {nth: 1}, bytes: {before: "<<", after: ">>"}}
  - {at: say, when: {nth: 2}, truncate: 30}
"""
    async with serving(TALK + faults) as server:
        one, two, three, _ = await frames(await server.client())
        assert said([json.loads(one.payload.removeprefix(b"<<").removesuffix(b">>"))]) == ["one"]
        assert len(two.payload) == 30
        assert said([json.loads(three.payload)]) == ["three"]


async def test_only_ascii_leaves_where_that_is_wanted() -> None:
    async with serving(TALK + "faults: [{at: say, escape: ascii, split: {parts: 2, into: messages}}]") as server:
        got = await frames(await server.client())
        assert all(frame.payload.isascii() for frame in got)
        assert said([json.loads(got[2].payload + got[3].payload)]) == ["zwö"]


async def test_bytes_drip_at_a_rate(autojump_clock: Any) -> None:
    async with serving(TALK + "faults: [{at: say, when: {nth: 1}, rate: 100B/s}]") as server:
        client = await server.client()
        session = await client.new()
        start = trio.current_time()
        await client.prompt(session)
        await client.next()
        size = len(socket(client).frames[-1].payload) + 4
        assert trio.current_time() - start == pytest.approx(size / 100, abs=0.1)


async def test_a_large_message_arrives_whole() -> None:
    async with serving(
        "turns: [{steps: [{say: hi}]}]\nfaults: [{at: say, bytes: {before: '" + " " * 2_100_000 + "'}}]"
    ) as server:
        client = await server.client()
        assert said(await client.turn(await client.new())) == ["hi"]


# --- endings


@pytest.mark.parametrize("code", [1000, 1001, 1008, 1009, 1011, 1012, 4001])
async def test_a_close_frame_with_a_code_comes_behind_what_was_said(code: int) -> None:
    fault = f"{{at: say, when: {{nth: 2}}, disconnect: {{code: {code}, reason: because}}}}"
    async with serving(TALK + f"faults: [{fault}]") as server:
        client = await server.client()
        await client.prompt(await client.new())
        assert said(await client.rest()) == ["one", "zwö"]
        last = socket(client).frames[-1]
        assert (last.opcode, last.code, last.payload[2:]) == (8, code, b"because")
        assert await client.raw.rest() == b""


async def test_a_plain_close_has_code_1000() -> None:
    async with serving(TALK + "faults: [{at: stop, disconnect: close}]") as server:
        client = await server.client()
        assert kinds(await client.turn(await client.new()))[-1] == "result"
        assert await client.next() is None
        assert socket(client).closed == 1000


async def test_a_reset_is_a_rst_behind_what_was_said_and_has_no_close_frame() -> None:
    async with serving(TALK + "faults: [{at: say, when: {nth: 2}, disconnect: reset}]") as server:
        client = await server.client()
        await client.prompt(await client.new())
        assert said(await client.rest()) == ["one", "zwö"]
        assert client.raw.ended == RESET
        assert not [frame for frame in socket(client).frames if frame.opcode == 8]


async def test_half_an_end_is_a_fin_without_a_close_frame_and_still_reads() -> None:
    async with serving(TALK + "faults: [{at: say, when: {nth: 2}, disconnect: half}]") as server:
        client = await server.client()
        session = await client.new()
        await client.prompt(session)
        assert said(await client.rest()) == ["one", "zwö"]
        assert client.raw.ended == b""
        assert not [frame for frame in socket(client).frames if frame.opcode == 8]
        await client.cancel(session)
        while "session/cancel" not in server.seen.arrived:
            await trio.lowlevel.checkpoint()


async def test_a_turn_goes_on_when_its_connection_has_gone_and_its_session_can_be_loaded() -> None:
    async with serving(TALK + "faults: [{at: say, when: {nth: 1}, disconnect: reset}]") as server:
        client = await server.client()
        session = await client.new()
        await client.prompt(session)
        assert said(await client.rest()) == ["one"]
        client = await server.client()
        await client.initialize()
        before = len(client.seen)
        await client.call("session/load", sessionId=session, cwd="/home/dev/project", mcpServers=[])
        assert said(client.seen[before:]) == ["one", "zwö", "three"]


async def test_an_end_may_come_before_the_reply(autojump_clock: Any) -> None:
    async with serving("faults: [{at: initialize, drop: true, disconnect: {code: 1011}}]") as server:
        client = await server.client()
        await client.request("initialize", protocolVersion=1)
        assert await client.next() is None
        assert socket(client).closed == 1011


# --- stall, pings


async def test_a_stalled_writer_says_nothing_not_even_pong(autojump_clock: Any) -> None:
    async with serving(TALK + "faults: [{at: say, when: {nth: 2}, stall: {write: 10s}}]") as server:
        client = await server.client()
        session = await client.new()
        start = trio.current_time()
        await client.prompt(session)
        assert said([await client.next(), await client.next()]) == ["one", "zwö"]
        assert trio.current_time() == start
        await socket(client).send(9, b"there?")
        assert await client.raw.quiet(9)
        assert said([await client.next()]) == ["three"]
        assert trio.current_time() - start == 10


async def test_a_stalled_reader_takes_nothing_for_a_while(autojump_clock: Any) -> None:
    async with serving(TALK + "faults: [{at: turn, stall: {read: 10s}}]") as server:
        client = await server.client()
        session = await client.new()
        start = trio.current_time()
        await client.turn(session)
        await client.call("session/list")
        assert trio.current_time() - start == 10


async def test_a_ping_is_answered_unless_a_fault_ignores_it(autojump_clock: Any) -> None:
    async with serving("faults: [{at: ping, when: {nth: 2..}, ignore: ping}]") as server:
        client = await server.client()
        await client.initialize()
        await socket(client).send(9, b"one")
        frame = await socket(client).frame()
        assert frame is not None
        assert (frame.opcode, frame.payload) == (10, b"one")
        await socket(client).send(9, b"two")
        await socket(client).send(9, b"three")
        assert await client.raw.quiet(5)
        assert server.seen.fired == [("ping", "ping")] * 2


async def test_pings_can_be_ignored_from_the_start_of_a_connection_on(autojump_clock: Any) -> None:
    async with serving("faults: [{at: connected, when: {nth: 1}, ignore: ping}]") as server:
        client, other = await server.client(), await server.client()
        for one in (client, other):
            await one.initialize()
            await socket(one).send(9, b"x")
        assert await client.raw.quiet(5)
        frame = await socket(other).frame()
        assert frame is not None
        assert frame.opcode == 10


async def test_a_ping_can_end_the_connection() -> None:
    async with serving("faults: [{at: ping, disconnect: {code: 1002}}]") as server:
        client = await server.client()
        await client.initialize()
        await socket(client).send(9, b"x")
        await client.rest()
        assert socket(client).closed == 1002


# --- the handshake


async def answer(server: Any, path: str = "/acp", **headers: str) -> bytes:
    """The head of the answer to a handshake."""
    return await Socket(await server.connect()).shake(path, headers)


@pytest.mark.parametrize("status", [401, 403, 404, 503])
async def test_a_handshake_is_refused_with_a_status(status: int) -> None:
    fault = f'{{at: "GET /acp", when: {{transport: ws}}, error: {{status: {status}, body: no}}}}'
    async with serving(f"faults: [{fault}]") as server:
        assert (await answer(server)).startswith(b"HTTP/1.1 %d " % status)


async def test_a_handshake_is_answered_with_a_redirect_or_late_or_never(autojump_clock: Any) -> None:
    faults = """
faults:
  - {at: "GET /acp", when: {nth: 1}, error: {status: 307, headers: {Location: "ws://127.0.0.1:1/acp"}}}
  - {at: "GET /acp", when: {nth: 2}, delay: 20s}
  - {at: "GET /acp", when: {nth: 4}, disconnect: reset}
  - {at: "GET /acp", when: {nth: 3}, drop: true}
"""
    async with serving(faults) as server:
        assert b"Location: ws://127.0.0.1:1/acp" in await answer(server)
        start = trio.current_time()
        assert (await answer(server)).startswith(b"HTTP/1.1 101 ")
        assert trio.current_time() - start == 20
        client = Socket(await server.connect())
        with trio.move_on_after(60) as scope:
            await client.shake("/acp", {})
        assert scope.cancelled_caught
        client = Socket(await server.connect())
        assert await client.shake("/acp", {}) == b""
        assert client.raw.ended == RESET


async def test_a_subprotocol_is_left_out_or_wrong() -> None:
    faults = """
faults:
  - {at: "GET /acp", when: {nth: 1}, edit: {set: /http/headers/Sec-WebSocket-Protocol, to: other.v9}}
  - {at: "reply:GET /acp", when: {nth: 2}, edit: {remove: /http/headers/Sec-WebSocket-Protocol}}
"""
    async with serving(faults) as server:
        head = await answer(server, **{"Sec-WebSocket-Protocol": "acp.v1"})
        assert (
            b"Sec-WebSocket-Protocol: other.v9\r\n" in head or b"sec-websocket-protocol: other.v9\r\n" in head.lower()
        )
        head = await answer(server, **{"Sec-WebSocket-Protocol": "acp.v1"})
        assert b"sec-websocket-protocol" not in head.lower()
