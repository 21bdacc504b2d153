"""The WebSocket side, judged by two foreign clients and by looking at the bytes."""

from __future__ import annotations

import base64
from contextlib import asynccontextmanager

import pytest
import trio
import trio.testing
import trio_websocket
from hypothesis import given
from hypothesis import strategies as st
from wsproto.frame_protocol import FrameProtocol, Opcode

from mockagent.net import sockets
from mockagent.net.channel import Broken, Bytes, Cut, Pause
from mockagent.net.http_message import Headers
from mockagent.net.websocket import (
    accept_websocket,
    encode_fragments,
    encode_frame,
    encode_text,
    encode_texts,
    handshake_problem,
)

KEY = base64.b64encode(bytes(16)).decode()
GOOD = {
    "Upgrade": "websocket",
    "Connection": "keep-alive, Upgrade",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": KEY,
}
HANDSHAKE = ("GET / HTTP/1.1\r\nHost: x\r\n" + "".join(f"{n}: {v}\r\n" for n, v in GOOD.items()) + "\r\n").encode()


class Peers:
    """A WebSocket server whose handler a test writes; plain HTTP gets what `handshake_problem` says."""

    def __init__(self, serve):
        self.serve = serve

    async def __call__(self, play, **options):
        async def handler(request, response):
            problem = handshake_problem(request.method, request.headers)
            if problem:
                await response.send(problem[0], body=problem[1].encode())
                return

            async def successor(stream, behind):
                async with accept_websocket(stream, request.head() + behind, **options) as peer:
                    await play(peer)

            response.take_over(successor)

        return await self.serve(handler)


@pytest.fixture
def peers(serve):
    return Peers(serve)


@asynccontextmanager
async def connect(served, **options):
    """A client of trio-websocket; leaving closes its socket, as its own way waits for a polite server."""
    stream = await trio.open_tcp_stream("127.0.0.1", served.port)
    async with trio.open_nursery() as nursery:
        yield await trio_websocket.wrap_client_stream(nursery, stream, "localhost", "/", **options)
        await stream.aclose()
        nursery.cancel_scope.cancel()


@asynccontextmanager
async def raw_websocket(served, **options):
    """A client that has done the handshake and now sends and sees bare bytes."""
    async with served.raw(**options) as raw:
        await raw.send(HANDSHAKE)
        assert (await raw.until(b"\r\n\r\n")).startswith(b"HTTP/1.1 101 ")
        yield raw


def masked(payload, opcode=1):
    """A client's frame; a mask of zeros leaves the payload readable."""
    frame = encode_frame(payload, opcode)
    size = len(frame) - len(payload)
    return frame[:1] + bytes([frame[1] | 0x80]) + frame[2:size] + bytes(4) + payload


def close_frame(code, reason=b""):
    return encode_frame(code.to_bytes(2, "big") + reason, 8)


async def echo(peer):
    async for message in peer:
        await peer.channel.write([Bytes(encode_text(message.data, binary=message.binary))])


async def close_reason(client):
    with pytest.raises(trio_websocket.ConnectionClosed) as raised:
        await client.get_message()
    reason = raised.value.reason
    return reason and (reason.code, reason.reason)


@pytest.mark.parametrize("size", [0, 1, 125, 126, 65535, 65536, 10**6])
async def test_messages_of_every_size_come_back_as_they_went(peers, size):
    served = await peers(echo)
    async with connect(served, max_message_size=10**7) as client:
        for message in ("é" * size, bytes(size)):
            await client.send_message(message)
            assert await client.get_message() == message


async def test_another_client_agrees(peers):
    import asyncio

    websockets = pytest.importorskip("websockets")

    served = await peers(echo)

    async def talk():
        async with websockets.connect(f"ws://127.0.0.1:{served.port}/", ping_interval=None) as client:
            for message in ("text", b"bytes", "x" * 10**5):
                await client.send(message)
                assert await client.recv() == message
            await (await client.ping())
        return client.close_code

    assert await trio.to_thread.run_sync(asyncio.run, talk()) == 1000


async def test_handshake_offers_are_answered(peers):
    served = await peers(echo, subprotocol="acp.v1", extra_headers=[("X-More", "yes")])
    async with connect(served, subprotocols=["other", "acp.v1"]) as client:
        assert client.subprotocol == "acp.v1"
        assert (b"x-more", b"yes") in client.handshake_headers


async def test_a_message_that_comes_with_the_handshake_is_not_lost(peers):
    served = await peers(echo)
    async with served.raw() as raw:
        await raw.send(HANDSHAKE + masked(b"early"))
        await raw.until(encode_text(b"early"))


async def test_a_burst_arrives_as_single_messages(peers):
    items = [b"%d" % number for number in range(1000)]

    async def play(peer):
        await peer.channel.write([Bytes(encode_texts(items))])

    served = await peers(play)
    async with connect(served) as client:
        assert [await client.get_message() for _ in items] == [item.decode() for item in items]
        assert await close_reason(client) == (1000, None)


@pytest.mark.parametrize("binary", [False, True])
async def test_fragments_may_cut_characters_and_wait_in_between(peers, binary):
    data = "a€b".encode()

    async def play(peer):
        ops = []
        for frame in encode_fragments(data, [2, -2], binary=binary):
            ops += [Bytes(frame[:1]), Pause(0.001), Bytes(frame[1:])]
        await peer.channel.write(ops)

    served = await peers(play)
    async with connect(served) as client:
        assert await client.get_message() == (data if binary else data.decode())


async def test_pings_are_answered_unless_pongs_are_off(peers):
    async def play(peer):
        async for message in peer:
            peer.send_pongs = message.data == b"on"
            await peer.channel.write([Bytes(encode_text(b"ok"))])

    served = await peers(play)
    async with raw_websocket(served) as raw:
        await raw.send(masked(b"off"))
        await raw.until(encode_text(b"ok"))
        await raw.send(masked(b"one", 9) + masked(b"on"))
        seen = await raw.until(encode_text(b"ok"))
        await raw.send(masked(b"two", 9))
        seen += await raw.until(encode_frame(b"two", 10))
        assert encode_frame(b"one", 10) not in seen


async def test_our_pings_see_their_pongs(peers):
    answered = trio.Event()

    async def play(peer):
        await peer.ping()
        await peer.ping(b"payload")
        answered.set()

    served = await peers(play)
    async with connect(served):
        await answered.wait()


async def test_a_client_that_answers_no_ping_is_dead(peers):
    found = trio.Event()

    async def play(peer):
        await peer.ping_loop(0, 0.01)
        assert peer.dead
        assert [message async for message in peer] == []
        assert peer.closed == (1006, "")
        found.set()

    served = await peers(play)
    async with raw_websocket(served) as raw:
        await found.wait()
        await raw.rest_and_reset()


async def test_a_dead_client_frees_a_write_that_is_stuck(peers):
    freed = trio.Event()

    async def play(peer):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(peer.ping_loop, 0, 0.05)
            with pytest.raises(Broken):
                await peer.channel.write([Bytes(encode_text(bytes(10**7)))])
            freed.set()

    served = await peers(play)
    async with raw_websocket(served, receive_buffer=4096):
        await freed.wait()


async def test_pinging_ends_with_the_websocket(peers):
    ended = trio.Event()

    async def play(peer):
        await peer.ping_loop(0, 10)
        assert not peer.dead
        ended.set()

    served = await peers(play)
    async with raw_websocket(served) as raw:
        await raw.send(masked((1000).to_bytes(2, "big"), 8))
        await ended.wait()


async def test_a_client_that_does_not_read_is_still_read_from(peers):
    got = []
    enough = trio.Event()

    async def play(peer):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(peer.channel.write, [Bytes(encode_text(bytes(10**7)))])
            async for message in peer:
                got.append(message.data)
                if len(got) == 500:
                    enough.set()
                    nursery.cancel_scope.cancel()

    served = await peers(play)
    async with raw_websocket(served, receive_buffer=4096) as raw:
        for number in range(500):
            await raw.send(masked(b"ping", 9) + masked(b"%d" % number))
        await enough.wait()
    assert got == [b"%d" % number for number in range(500)]


async def test_pongs_come_between_writes_and_never_inside_one(peers):
    go = trio.Event()

    async def play(peer):
        frame = encode_text(b"x" * 200)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(peer.channel.write, [Bytes(frame[:50]), Pause(0.05), Bytes(frame[50:])])
            async for _ in peer:
                go.set()

    served = await peers(play)
    async with raw_websocket(served) as raw:
        await raw.send(masked(b"now", 9) + masked(b"go"))
        await go.wait()
        assert await raw.until(encode_frame(b"now", 10)) in (
            encode_text(b"x" * 200) + encode_frame(b"now", 10),
            encode_frame(b"now", 10),
        )


async def test_a_close_from_the_client_is_answered_and_seen(peers):
    seen = []
    done = trio.Event()

    async def play(peer):
        seen.extend([message.data async for message in peer])
        seen.append(peer.closed)
        with pytest.raises(Broken):
            await peer.channel.write([Bytes(encode_text(b"late"))])
        with pytest.raises(Broken):
            await peer.ping()
        done.set()

    served = await peers(play)
    async with raw_websocket(served) as raw:
        await raw.send(masked(b"last") + masked((4001).to_bytes(2, "big") + b"bye", 8))
        assert await raw.rest() == close_frame(4001, b"bye")
        await done.wait()
    assert seen == [b"last", (4001, "bye")]


@pytest.mark.parametrize(
    ("cut", "seen"),
    [
        (Cut(), (1000, None)),
        (Cut(code=1013, reason="later"), (1013, "later")),
        (Cut(code=4000), (4000, None)),
        (Cut(code=1006), (1006, None)),
        (Cut("drop"), (1006, None)),
        (Cut("half"), (1006, None)),
        (Cut("reset"), (1006, None)),
    ],
    ids=str,
)
async def test_every_ending_looks_to_the_client_as_it_should(peers, cut, seen):
    async def play(peer):
        await peer.channel.write([Bytes(encode_text(b"before")), cut, Bytes(encode_text(b"behind"))])
        await peer.channel.close(Cut())
        with pytest.raises(Broken):
            await peer.channel.write([Bytes(encode_text(b"late"))])

    served = await peers(play)
    async with connect(served) as client:
        assert await client.get_message() == "before"
        assert await close_reason(client) == seen
    await served.left_alone()
    assert served.log == []


async def test_reset_comes_behind_all_that_was_written(peers):
    data = encode_text(bytes(10**6))

    async def play(peer):
        await peer.channel.write([Bytes(data), Cut("reset")])

    served = await peers(play)
    async with raw_websocket(served) as raw:
        assert await raw.rest_and_reset() == data


@pytest.mark.parametrize("how", ["drop", "half"])
async def test_an_end_without_a_close_frame_is_orderly_for_tcp(peers, how):
    async def play(peer):
        await peer.channel.write([Bytes(encode_text(b"x")), Cut(how)])

    served = await peers(play)
    async with raw_websocket(served) as raw:
        assert await raw.rest() == encode_text(b"x")


async def test_half_goes_on_reading(peers):
    got = trio.Event()

    async def play(peer):
        await peer.channel.close(Cut("half"))
        async for message in peer:
            assert message.data == b"still here"
            got.set()

    served = await peers(play)
    async with raw_websocket(served) as raw:
        assert await raw.rest() == b""
        await raw.send(masked(b"", 9) + masked(b"still here"))
        await got.wait()


async def test_close_frames_can_be_left_out(peers):
    async def play(peer):
        peer.send_close_frames = False
        async for _ in peer:
            pass

    served = await peers(play)
    async with raw_websocket(served) as raw:
        await raw.send(masked((1000).to_bytes(2, "big"), 8))
        assert await raw.rest() == b""


async def test_a_close_that_the_client_ignores_ends_all_the_same(peers, monkeypatch):
    monkeypatch.setattr("mockagent.net.websocket.CLOSE_SECONDS", 0.02)

    async def play(peer):
        await peer.channel.close(Cut())

    served = await peers(play)
    async with raw_websocket(served) as raw:
        assert await raw.rest() == close_frame(1000)


async def test_what_crosses_our_close_frame_is_ignored(peers):
    closed = trio.Event()

    async def play(peer):
        await peer.channel.close(Cut(code=4000))
        closed.set()

    served = await peers(play, max_message=10)
    async with raw_websocket(served) as raw:
        assert await raw.until(close_frame(4000)) == close_frame(4000)
        await raw.send(masked(b"ping", 9) + masked(b"late") + masked(b"x" * 11) + masked(b"", 9))
        await raw.send(masked((4000).to_bytes(2, "big"), 8))
        assert await raw.rest() == b""
    await closed.wait()
    await served.left_alone()
    assert served.log == []


async def test_a_handler_that_fails_says_so_with_its_close(peers):
    async def play(peer):
        raise ValueError("no")

    served = await peers(play)
    async with connect(served) as client:
        assert await close_reason(client) == (1011, None)
    await served.left_alone()
    assert served.log == ["connection failed: ValueError('no')"]


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (masked(b"x" * 1001), 1009),
        (masked(b"x" * 100_000, 2), 1009),
        (masked(b"\xff"), 1007),
        (encode_text(b"not masked"), 1002),
        (masked(b"reserved", 3), 1002),
    ],
)
async def test_what_a_client_may_not_send_is_named_in_the_close(peers, data, code):
    async def play(peer):
        assert [message async for message in peer] == []

    served = await peers(play, max_message=1000)
    async with raw_websocket(served) as raw:
        await raw.send(data)
        assert (await raw.rest())[2:4] == code.to_bytes(2, "big")
    await served.left_alone()
    assert served.log == []


@pytest.mark.parametrize("how", ["close", "reset"])
async def test_a_client_that_vanishes_ends_the_messages(peers, how):
    ended = trio.Event()

    async def play(peer):
        assert [message async for message in peer] == []
        assert peer.closed == (1006, "")
        ended.set()

    served = await peers(play)
    async with raw_websocket(served) as raw:
        if how == "close":
            await raw.stream.aclose()
        else:
            sockets.abort(raw.stream)
        await ended.wait()


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({}, None),
        ({"Upgrade": "WebSocket"}, None),
        ({"Upgrade": "h2c"}, 426),
        ({"Connection": "close"}, 426),
        ({"Sec-WebSocket-Version": "8"}, 426),
        ({"Sec-WebSocket-Key": "short"}, 400),
        ({"Sec-WebSocket-Key": ""}, 400),
    ],
)
def test_a_bad_handshake_is_told_from_a_good_one(change, status):
    problem = handshake_problem("GET", Headers({**GOOD, **change}.items()))
    assert (problem and problem[0]) == status
    assert handshake_problem("POST", Headers(GOOD.items())) == (405, "a WebSocket handshake is a GET")


@given(st.binary(max_size=300), st.lists(st.integers(-310, 310)), st.booleans())
def test_fragments_hold_the_message_and_end_once(data, at, binary):
    protocol = FrameProtocol(client=True, extensions=[])
    frames = encode_fragments(data, at, binary=True)
    protocol.receive_bytes(b"".join(frames))
    got = list(protocol.received_frames())
    assert b"".join(frame.payload for frame in got) == data  # type: ignore[misc]
    assert [frame.message_finished for frame in got][-1:] == [True]
    assert sum(frame.message_finished for frame in got) == 1
    assert got[0].opcode is Opcode.BINARY
    assert encode_fragments(data, at, binary=binary)[0][1:] == frames[0][1:]


@given(st.lists(st.binary(max_size=200)), st.booleans())
def test_a_burst_is_the_same_bytes_as_its_messages(items, binary):
    assert encode_texts(items, binary=binary) == b"".join(encode_text(item, binary=binary) for item in items)
