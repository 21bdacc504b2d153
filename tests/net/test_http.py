"""The HTTP server as ordinary clients see it, and what it says to those who get HTTP wrong."""

from __future__ import annotations

import json

import httpx
import pytest
import trio

from mockagent.net.http import Limits, Request, Responder, open_listeners

CHUNKED = b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"


async def echo(request: Request, response: Responder) -> None:
    """Answers with what the server has understood."""
    seen = {
        "method": request.method,
        "target": request.target,
        "segments": request.segments,
        "query": request.query,
        "headers": request.headers.items(),
        "body": request.body.decode("latin-1"),
    }
    await response.send(200, [("Content-Type", "application/json")], json.dumps(seen).encode())


async def test_a_request_arrives_with_all_its_parts(serve):
    served = await serve(echo)
    async with httpx.AsyncClient(base_url=served.url, verify=False) as client:
        reply = await client.post("/a%2Fb/%C3%A9//c?x=1&x=&y=%20+z", content=b"body", headers={"X-Odd": "Value"})
    seen = reply.json()
    assert (seen["method"], seen["body"]) == ("POST", "body")
    assert seen["segments"] == ["a/b", "é", "", "c"]
    assert seen["query"] == {"x": ["1", ""], "y": ["  z"]}
    assert ["x-odd", "Value"] in seen["headers"]
    assert reply.headers["content-length"] == str(len(reply.content))


async def test_one_connection_serves_many_requests(serve):
    peers = set()

    async def note(request, response):
        peers.add(request.peer)
        await response.send(200, body=request.body)

    served = await serve(note)
    async with httpx.AsyncClient(base_url=served.url, verify=False) as client:
        for number in range(5):
            reply = await client.post("/", content=b"x" * number)
            assert reply.content == b"x" * number
    assert len(peers) == 1


async def test_chunked_bodies_are_put_together(serve):
    served = await serve(echo)

    async def parts():
        yield b"one "
        yield b"two"

    async with httpx.AsyncClient(base_url=served.url, verify=False) as client:
        assert (await client.post("/", content=parts())).json()["body"] == "one two"


@pytest.mark.parametrize("method", ["GET", "HEAD", "OPTIONS", "DELETE", "PURGE"])
async def test_every_method_reaches_the_handler(serve, method):
    served = await serve(echo)
    async with httpx.AsyncClient(base_url=served.url, verify=False) as client:
        reply = await client.request(method, "/")
        assert reply.status_code == 200
        assert int(reply.headers["content-length"]) > 0
        assert (reply.content == b"") == (method == "HEAD")
        assert (await client.get("/")).status_code == 200, "the framing is intact"


@pytest.mark.parametrize("status", [204, 304])
async def test_a_status_without_a_body_sends_none(serve, status):
    async def handler(request, response):
        await response.send(status, body=b"not to be seen")

    served = await serve(handler)
    async with httpx.AsyncClient(base_url=served.url, verify=False) as client:
        for _ in range(2):
            reply = await client.get("/")
            assert (reply.status_code, reply.content) == (status, b"")


async def test_common_headers_fill_what_the_handler_left_out(serve):
    async def handler(request, response):
        await response.send(200, [("server", "mine")])

    served = await serve(handler, common=lambda: [("Server", "theirs"), ("Date", "today")])
    async with httpx.AsyncClient(base_url=served.url, verify=False) as client:
        reply = await client.get("/")
    assert (reply.headers.get_list("server"), reply.headers["date"]) == (["mine"], "today")


async def test_pipelined_requests_are_answered_in_order(serve):
    async def handler(request, response):
        assert not response.disconnected.is_set()  # the watch is on, and must not swallow what follows
        await trio.lowlevel.checkpoint()
        await response.send(200, body=request.body)

    served = await serve(handler)
    async with served.raw() as raw:
        await raw.send(b"".join(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\n%d" % n for n in range(9)))
        assert [(await raw.reply())[2] for _ in range(9)] == [b"%d" % n for n in range(9)]


async def test_a_client_that_has_ended_its_side_still_gets_its_replies(serve):
    served = await serve(echo)
    async with served.raw() as raw:
        await raw.send(b"GET /a HTTP/1.1\r\nHost: x\r\n\r\nGET /b HTTP/1.1\r\nHost: x\r\n\r\n")
        await raw.stream.send_eof()
        assert (await raw.rest()).count(b"200 OK") == 2


async def test_continue_is_sent_when_the_client_waits_for_it(serve):
    served = await serve(echo)
    async with served.raw() as raw:
        await raw.send(b"POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n")
        assert (await raw.until(b"\r\n\r\n")).startswith(b"HTTP/1.1 100 ")
        await raw.send(b"body")
        status, _, body = await raw.reply()
        assert (status, json.loads(body)["body"]) == (200, "body")


async def test_an_old_client_gets_its_reply_and_the_end(serve):
    served = await serve(echo)
    async with served.raw() as raw:
        await raw.send(b"GET / HTTP/1.0\r\n\r\n")
        assert (await raw.rest()).startswith(b"HTTP/1.1 200 OK\r\n")


@pytest.mark.parametrize(
    ("data", "status", "code"),
    [
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 400, "malformed"),
        (b"GET / HTTP/1.1\r\n\r\n", 400, "malformed"),
        (b"GET / HTTP/1.1\r\nHost: x\r\n bad\x00\r\n\r\n", 400, "malformed"),
        (b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: two\r\n\r\n", 400, "malformed"),
        (b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", 400, "malformed"),
        (b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: " + b"9" * 5000 + b"\r\n\r\n", 400, "malformed"),
        (CHUNKED + b"zz\r\n", 400, "malformed"),
        (b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip\r\n\r\n", 501, "not_implemented"),
        (b"CONNECT a:1 HTTP/1.1\r\nHost: x\r\n\r\n", 501, "not_implemented"),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505, "version_not_supported"),
        (b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1001\r\n\r\n", 413, "body_too_large"),
        (CHUNKED + b"3e9\r\n" + b"x" * 1001, 413, "body_too_large"),
        (b"GET / HTTP/1.1\r\nHost: x\r\nX: " + b"x" * 2000, 431, "headers_too_large"),
        (b"GET / HTTP/1.1\r\nHost: x\r\nX: " + b"x" * 2000 + b"\r\n\r\n", 431, "headers_too_large"),
    ],
)  # fmt: skip
async def test_what_is_wrong_is_named_and_the_connection_ends(serve, data, status, code):
    served = await serve(echo, Limits(header_bytes=1000, body_bytes=1000))
    async with served.raw() as raw:
        await raw.send(data)
        got, headers, body = await raw.reply()
        assert (got, json.loads(body)["error"]["code"], headers["connection"]) == (status, code, "close")
        assert await raw.rest() == b""


async def test_a_too_large_body_in_flight_does_not_lose_the_answer(serve):
    served = await serve(echo, Limits(body_bytes=1000))
    async with served.raw() as raw:
        await raw.send(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 200000\r\n\r\n" + b"x" * 200000)
        assert (await raw.reply())[0] == 413


@pytest.mark.parametrize(
    "data",
    [b"GET / HT", b"GET / HTTP/1.1\r\nHost: x\r\n", b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nab"],
)
async def test_a_slow_request_times_out(serve, data):
    served = await serve(echo, Limits(header_seconds=0.05, body_seconds=0.05))
    async with served.raw() as raw:
        await raw.send(data)
        status, _, body = await raw.reply()
        assert (status, json.loads(body)["error"]["code"]) == (408, "timeout")


async def test_a_silent_connection_is_closed_without_a_word(serve):
    served = await serve(echo, Limits(idle_seconds=0.05))
    async with served.raw() as raw:
        assert await raw.rest() == b""
    async with served.raw() as raw:
        await raw.send(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        assert (await raw.reply())[0] == 200
        assert await raw.rest() == b""


async def test_one_connection_too_many_is_turned_away(serve):
    served = await serve(echo, Limits(connections=1))
    async with served.raw() as first:
        await first.send(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        assert (await first.reply())[0] == 200
        async with served.raw() as second:
            assert (await second.reply())[0] == 503
            assert await second.rest() == b""
        await first.send(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        assert (await first.reply())[0] == 200


@pytest.mark.parametrize("end", ["raise", "silent"])
async def test_a_handler_that_fails_is_a_500_and_the_connection_stays(serve, end):
    async def handler(request, response):
        if end == "raise":
            raise ValueError("no such luck")

    served = await serve(handler)
    async with httpx.AsyncClient(base_url=served.url, verify=False) as client:
        for _ in range(2):
            reply = await client.get("/path")
            assert (reply.status_code, reply.json()["error"]["code"]) == (500, "internal_error")
    await served.left_alone()
    assert len(served.log) == 2
    assert served.log[0].startswith("GET /path: ")


@pytest.mark.parametrize("bad", [(200, [("X", "a\r\nb: c")]), (200, [("a b", "c")]), (99, [])])
async def test_a_reply_that_cannot_be_sent_is_a_500(serve, bad):
    async def handler(request, response):
        await response.send(*bad)

    served = await serve(handler)
    async with httpx.AsyncClient(base_url=served.url, verify=False) as client:
        assert (await client.get("/")).status_code == 500


async def test_a_second_answer_is_a_mistake_that_reaches_no_client(serve):
    async def handler(request, response):
        await response.send(200, body=b"first")
        await response.send(200, body=b"second")

    served = await serve(handler)
    async with served.raw() as raw:
        await raw.send(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        assert b"second" not in await raw.rest()
    await served.left_alone()
    assert len(served.log) == 1


async def test_shutdown_lets_a_running_request_finish_and_closes_idle_connections(serve):
    inside, leave = trio.Event(), trio.Event()

    async def handler(request, response):
        inside.set()
        await leave.wait()
        await response.send(200, body=b"done")

    served = await serve(handler)
    async with served.raw() as idle, served.raw() as busy:
        await busy.send(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        await inside.wait()
        served.server.shutdown(grace=10)
        assert await idle.rest() == b""
        leave.set()
        assert (await busy.reply())[2] == b"done"
        assert await busy.rest() == b""
    with pytest.raises(OSError, match="all attempts to connect"):
        await trio.open_tcp_stream("127.0.0.1", served.port)


async def test_shutdown_does_not_wait_for_ever(serve):
    inside = trio.Event()

    async def handler(request, response):
        inside.set()
        await trio.sleep_forever()

    served = await serve(handler)
    async with served.raw() as raw:
        await raw.send(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        await inside.wait()
        served.server.shutdown(grace=0)
        assert await raw.rest() == b""


async def test_abort_resets_every_client(serve):
    inside = trio.Event()

    async def handler(request, response):
        inside.set()
        await trio.sleep_forever()

    served = await serve(handler)
    async with served.raw() as idle, served.raw() as busy:
        await busy.send(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        await inside.wait()
        while served.server.connections < 2:
            await trio.lowlevel.checkpoint()
        served.server.abort()
        await idle.rest_and_reset()
        await busy.rest_and_reset()


async def test_all_addresses_of_a_host_share_one_port():
    listeners = await open_listeners("localhost", 0)
    assert len({listener.socket.getsockname()[1] for listener in listeners}) == 1
    for listener in listeners:
        await listener.aclose()


@pytest.mark.parametrize(
    ("target", "path", "query"),
    [
        ("/a/b?x=1", "/a/b", {"x": ["1"]}),
        ("http://host:1/a?x=1", "/a", {"x": ["1"]}),
        ("http://host?x=1", "/", {"x": ["1"]}),
        ("http://host", "/", {}),
        ("/go?to=http://there/", "/go", {"to": ["http://there/"]}),
        ("*", "*", {}),
    ],
)
def test_a_target_is_taken_apart(target, path, query):
    request = Request("GET", target)
    assert (request.path, request.query) == (path, query)


def test_a_head_can_be_written_again():
    request = Request("GET", "/a?b", [(b"Host", b"x"), (b"X-Two", b"\xe9")])
    assert request.head() == b"GET /a?b HTTP/1.1\r\nHost: x\r\nX-Two: \xe9\r\n\r\n"
    assert request.headers.get("x-two") == "é"
