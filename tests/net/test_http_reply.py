"""Streamed and damaged replies, byte by byte: chunks, endings, hooks, and the watch for a client that leaves."""

from __future__ import annotations

import httpx
import pytest
import trio
import trio.testing

from mockagent.net import sockets
from mockagent.net.channel import Broken, Bytes, Cut, Pause, Rate

GET = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"


async def test_what_leaves_in_one_write_is_one_chunk(serve):
    async def handler(request, response):
        body = await response.start(200, [("Content-Type", "text/event-stream")])
        await body.write([Bytes(b"one"), Bytes(b"two")])
        await body.write([Bytes(b"a"), Bytes(b"b", alone=True)])
        await body.write([])
        await body.close(Cut())
        await body.close(Cut("reset"))

    served = await serve(handler)
    async with served.raw() as raw:
        for _ in range(2):
            await raw.send(GET)
            head = await raw.until(b"\r\n\r\n")
            assert b"Transfer-Encoding: chunked" in head
            assert await raw.until(b"0\r\n\r\n") == b"6\r\nonetwo\r\n1\r\na\r\n1\r\nb\r\n0\r\n\r\n"


async def test_the_head_and_each_write_arrive_at_once(serve):
    seen = trio.Event()

    async def handler(request, response):
        body = await response.start(200)
        await seen.wait()
        await body.write([Bytes(b"x")])
        await trio.sleep_forever()

    served = await serve(handler)
    async with served.raw() as raw:
        await raw.send(GET)
        await raw.until(b"\r\n\r\n")
        seen.set()
        await raw.until(b"1\r\nx\r\n")


async def test_an_open_body_is_ended_when_the_handler_returns(serve):
    async def handler(request, response):
        await (await response.start(200)).write([Bytes(b"x")])

    served = await serve(handler)
    async with httpx.AsyncClient(base_url=served.url, verify=False) as client:
        for _ in range(2):
            assert (await client.get("/")).content == b"x"


async def test_a_body_breaks_off_when_the_handler_fails(serve):
    async def handler(request, response):
        await (await response.start(200)).write([Bytes(b"x")])
        raise ValueError("half way")

    served = await serve(handler)
    async with served.raw() as raw:
        await raw.send(GET)
        assert (await raw.rest()).endswith(b"1\r\nx\r\n")
    await served.left_alone()
    assert len(served.log) == 1


async def test_head_gets_the_headers_of_a_stream_alone(serve):
    async def handler(request, response):
        await (await response.start(200)).write([Bytes(b"x")])

    served = await serve(handler)
    async with httpx.AsyncClient(base_url=served.url, verify=False) as client:
        for _ in range(2):
            reply = await client.head("/")
            assert (reply.content, reply.headers["transfer-encoding"]) == (b"", "chunked")


async def test_an_old_client_gets_a_body_that_ends_with_the_connection(serve):
    async def handler(request, response):
        await (await response.start(200)).write([Bytes(b"x"), Bytes(b"y", alone=True)])

    served = await serve(handler)
    async with served.raw() as raw:
        await raw.send(b"GET / HTTP/1.0\r\n\r\n")
        assert (await raw.rest()).endswith(b"\r\n\r\nxy")


async def test_drop_ends_the_connection_without_a_last_chunk(serve):
    async def handler(request, response):
        await (await response.start(200)).write([Bytes(b"x"), Cut("drop"), Bytes(b"never")])

    served = await serve(handler)
    async with served.raw() as raw:
        await raw.send(GET)
        assert (await raw.rest()).endswith(b"\r\n\r\n1\r\nx\r\n")


@pytest.mark.parametrize("size", [1, 10**6])
async def test_reset_comes_behind_all_that_was_written(serve, size):
    data = b"x" * size

    async def handler(request, response):
        body = await response.start(200)
        await body.write([Bytes(data), Cut("reset")])
        with pytest.raises(Broken):
            await body.write([Bytes(b"y")])

    served = await serve(handler)
    async with served.raw() as raw:
        await raw.send(GET)
        assert (await raw.rest_and_reset()).endswith(data + b"\r\n")
    await served.left_alone()
    assert served.log == []


async def test_a_reset_does_not_wait_for_a_client_that_does_not_read(serve, monkeypatch):
    monkeypatch.setattr(sockets.drain, "__defaults__", (0.05,))
    done = trio.Event()

    async def handler(request, response):
        body = await response.start(200)
        with trio.move_on_after(0.05):
            await body.write([Bytes(b"x" * 10**7)])
        await body.close(Cut("reset"))
        done.set()

    served = await serve(handler)
    async with served.raw(receive_buffer=4096) as raw:
        await raw.send(GET)
        await done.wait()
        await raw.rest_and_reset()


async def test_half_ends_our_direction_and_goes_on_listening(serve):
    gone = trio.Event()

    async def handler(request, response):
        body = await response.start(200)
        await body.write([Bytes(b"x"), Cut("half")])
        await response.disconnected.wait()
        gone.set()

    served = await serve(handler)
    async with served.raw() as raw:
        await raw.send(GET)
        assert (await raw.rest()).endswith(b"1\r\nx\r\n")
        await trio.testing.wait_all_tasks_blocked()
        assert not gone.is_set()
        await raw.send(b"still talking")
        await raw.stream.send_eof()
        await gone.wait()


@pytest.mark.parametrize("how", ["eof", "close", "reset"])
async def test_a_client_that_leaves_a_stream_is_noticed_at_once(serve, how):
    gone = trio.Event()

    async def handler(request, response):
        await response.start(200)
        await response.disconnected.wait()
        gone.set()

    served = await serve(handler)
    async with served.raw() as raw:
        await raw.send(GET + GET)  # what is pipelined must not be taken for a sign of life, nor lost
        await raw.until(b"\r\n\r\n")
        if how == "eof":
            await raw.stream.send_eof()
        elif how == "close":
            await raw.stream.aclose()
        else:
            sockets.abort(raw.stream)
        await gone.wait()
    await served.left_alone()
    assert served.log == []


async def test_a_client_that_leaves_breaks_the_channel_of_its_reply(serve):
    broken = trio.Event()

    async def handler(request, response):
        body = await response.start(200)
        with pytest.raises(Broken):
            while True:
                await body.write([Bytes(b"x" * 10**5)])
        broken.set()
        raise Broken  # as a handler does that does not care

    served = await serve(handler)
    async with served.raw() as raw:
        await raw.send(GET)
        await raw.until(b"\r\n\r\n")
    await broken.wait()
    await served.left_alone()
    assert served.log == []


async def test_a_client_that_does_not_read_stops_its_own_reply_only(serve):
    async def handler(request, response):
        if request.path == "/big":
            await (await response.start(200)).write([Bytes(b"x" * 10**7)])
        else:
            await response.send(200, body=b"small")

    served = await serve(handler)
    async with served.raw(receive_buffer=4096) as lazy:
        await lazy.send(GET.replace(b"/ ", b"/big "))
        await lazy.until(b"\r\n\r\n")
        async with httpx.AsyncClient(base_url=served.url, verify=False) as client:
            assert (await client.get("/")).content == b"small"


def hooked(edit):
    async def handler(request, response):
        await response.send(200, body=b"0123456789", hook=edit)

    return handler


async def test_a_hook_that_changes_nothing_keeps_the_connection(serve):
    served = await serve(hooked(lambda data: [Bytes(data[:9]), Pause(0), Rate(data[9:], 10**6)]))
    async with served.raw() as raw:
        for _ in range(2):
            await raw.send(GET)
            assert (await raw.reply())[2] == b"0123456789"


@pytest.mark.parametrize(
    ("edit", "end"),
    [
        (lambda data: [Bytes(data.replace(b"Length: 10", b"Length: 99"))], b"Content-Length: 99\r\n\r\n0123456789"),
        (lambda data: [Bytes(data.replace(b"Length: 10", b"Length: 3"))], b"Content-Length: 3\r\n\r\n0123456789"),
        (lambda data: [Bytes(data[:-5])], b"\r\n\r\n01234"),
        (lambda data: [Bytes(data), Bytes(b"more")], b"0123456789more"),
        (lambda data: [], b""),
        (lambda data: [Bytes(data), Cut("drop")], b"0123456789"),
        (lambda data: [Bytes(data), Cut("half")], b"0123456789"),
    ],
)
async def test_a_damaged_reply_leaves_as_the_hook_says_and_the_connection_ends(serve, edit, end):
    served = await serve(hooked(edit))
    async with served.raw() as raw:
        await raw.send(GET)
        assert (await raw.rest()).endswith(end)
    await served.left_alone()
    assert served.log == []


async def test_a_hook_can_reset_in_the_middle_of_a_reply(serve):
    served = await serve(hooked(lambda data: [Bytes(data[:-5]), Cut("reset")]))
    async with served.raw() as raw:
        await raw.send(GET)
        assert (await raw.rest_and_reset()).endswith(b"\r\n\r\n01234")
    await served.left_alone()
    assert served.log == []


async def test_the_head_of_a_stream_can_be_damaged_too(serve):
    async def handler(request, response):
        body = await response.start(200, hook=lambda head: [Bytes(b"noise" + head)])
        await body.write([Bytes(b"x")])

    served = await serve(handler)
    async with served.raw() as raw:
        await raw.send(GET)
        got = await raw.rest()
    assert got.startswith(b"noiseHTTP/1.1 200 OK\r\n")
    assert got.endswith(b"1\r\nx\r\n0\r\n\r\n")


async def test_whoever_takes_over_gets_every_byte_behind_the_request(serve):
    async def handler(request, response):
        assert not response.disconnected.is_set()
        await trio.testing.wait_all_tasks_blocked()  # the watch has read what was pipelined
        response.take_over(successor)

    async def successor(stream, behind):
        await stream.send_all(b"<" + behind)
        while data := await stream.receive_some():
            await stream.send_all(data)

    served = await serve(handler)
    async with served.raw() as raw:
        await raw.send(b"GET / HTTP/1.1\r\nHost: x\r\nUpgrade: odd\r\nConnection: upgrade\r\n\r\nearly")
        assert await raw.until(b"early") == b"<early"
        await raw.send(b"late")
        assert await raw.until(b"late") == b"late"
        await raw.stream.send_eof()
        assert await raw.rest() == b""
