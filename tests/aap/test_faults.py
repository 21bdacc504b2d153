"""Faults on AAP's messages, seen from the client's end of a real connection."""

from __future__ import annotations

import json

import h11
import httpx
import pytest
import trio
import trio.testing

TALK = "turns: [{steps: [{say: one}, {say: 'zwö'}]}]\n"


async def raw(server, request: bytes, seconds: float = 5) -> bytes:
    """Sends bytes, reads until the end of the connection."""
    stream = await trio.open_tcp_stream("127.0.0.1", server.port)
    data = b""
    with trio.fail_after(seconds):
        async with stream:
            await stream.send_all(request)
            try:
                while part := await stream.receive_some():
                    data += part
            except trio.BrokenResourceError:
                data += b"<reset>"
    return data


def get(path: str) -> bytes:
    return f"GET /aap{path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode()


def turn(session: str, stream: str = "delta") -> bytes:
    body = json.dumps({"messages": [{"role": "user", "content": "x"}], "stream": stream}).encode()
    head = f"POST /aap/sessions/{session}/turns HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode() + body


@pytest.mark.parametrize("at", ["turn", "POST /sessions/*/turns", "reply:POST /sessions/*/turns"])
async def test_an_error_takes_the_place_of_a_turns_answer(serve, at):
    server = await serve(TALK + f"faults: [{{at: '{at}', when: {{times: 1}}, error: rate_limited}}]")
    session = await server.create()
    for mode in ("delta", "none"):
        reply = await server.turn(session, "hi", stream=mode)
        if mode == "delta":
            assert (reply.status_code, reply.json()["error"]["code"]) == (429, "rate_limited")
            assert reply.headers["retry-after"]
        else:
            assert reply.status_code == 200


async def test_an_error_may_be_any_http_reply(serve):
    error = "{status: 503, headers: {X-Who: mock}, body: down for lunch}"
    server = await serve(f"faults: [{{at: GET /meta, error: {error}}}]")
    reply = await server.http.get("/meta", headers={"Origin": "http://localhost"})
    assert (reply.status_code, reply.text, reply.headers["x-who"]) == (503, "down for lunch", "mock")
    assert reply.headers["content-type"].startswith("text/plain")
    assert reply.headers["access-control-allow-origin"] == "http://localhost"


async def test_the_head_of_a_reply_can_be_edited(serve):
    edit = "[{set: /http/status, to: 203}, {set: /http/headers/X-A, to: b}, {remove: /http/headers/Content-Type}]"
    server = await serve(f"faults: [{{at: 'reply:GET /meta', edit: {edit}}}]")
    reply = await server.http.get("/meta")
    assert (reply.status_code, reply.headers["x-a"]) == (203, "b")
    assert "content-type" not in reply.headers


async def test_an_edit_of_the_body_leaves_the_head_alone(serve):
    server = await serve("faults: [{at: 'reply:GET /meta', edit: [{set: /more, to: 1}]}]")
    reply = await server.http.get("/meta", headers={"Origin": "http://localhost"})
    assert (reply.json()["more"], reply.headers["content-type"]) == (1, "application/json")
    assert reply.headers["access-control-allow-origin"] == "http://localhost"


async def test_events_can_be_edited_dropped_copied_and_renamed(serve):
    server = await serve(
        TALK
        + """
faults:
  - {at: say, when: {nth: 1}, edit: [{set: /delta, to: 'changed ${value}'}], copies: 2}
  - {at: 'event:text_delta', when: {nth: 2}, edit: [{event_name: odd}]}
  - {at: stop, drop: true}
"""
    )
    events = await server.events(await server.create(), "hi")
    assert events == [
        ("turn_start", {}),
        ("text_delta", {"delta": "changed one"}),
        ("text_delta", {"delta": "changed one"}),
        ("odd", {"delta": "zwö"}),
    ]


async def test_stop_means_the_end_of_a_turn_in_every_mode(serve):
    server = await serve(TALK + "faults: [{at: stop, edit: [{set: /stopReason, to: refusal}]}]")
    session = await server.create()
    assert (await server.turn(session, "hi")).json()["stopReason"] == "refusal"
    assert (await server.events(session, "hi"))[-1] == ("turn_stop", {"stopReason": "refusal"})


async def test_steps_play_into_the_same_answer_even_behind_its_end(serve):
    server = await serve(TALK + "faults: [{at: 'event:turn_stop', play_after: [{say: and another thing}]}]")
    events = await server.events(await server.create(), "hi")
    assert events[-2:] == [
        ("turn_stop", {"stopReason": "end_turn"}),
        ("text_delta", {"delta": "and another thing"}),
    ]


async def test_a_held_event_leaves_before_the_answer_ends(serve):
    server = await serve(TALK + "faults: [{at: say, when: {nth: 1}, hold: {until: 5s}}]")
    events = await server.events(await server.create(), "hi")
    assert [data.get("delta") for _, data in events] == [None, "zwö", None, "one"]


async def test_wire_effects_of_events(serve):
    server = await serve(
        TALK
        + """
faults:
  - {at: say, when: {nth: 1}, newline: crlf, comment: hello}
  - {at: say, when: {nth: 2}, escape: ascii, no_blank: true}
"""
    )
    data = await raw(server, turn(await server.create()))
    assert b': hello\r\nevent: text_delta\r\ndata: {"delta":"one"}\r\n\r\n' in data
    assert b'event: text_delta\ndata: {"delta":"zw\\u00f6"}\n' in data


async def test_a_stream_can_end_in_every_way(serve):
    for how, ending in [("close", b"0\r\n\r\n"), ("reset", b"<reset>"), ("half", b"\r\n")]:
        server = await serve(TALK + f"faults: [{{at: say, when: {{nth: 2}}, disconnect: {how}}}]")
        data = await raw(server, turn(await server.create()))
        assert "zwö".encode() in data
        assert b"turn_stop" not in data
        assert data.endswith(ending)


async def test_a_truncated_reply_misses_its_rest_and_the_connection_ends(serve):
    server = await serve("faults: [{at: 'reply:GET /meta', truncate: 10}]")
    data = await raw(server, get("/meta"))
    head, _, body = data.partition(b"\r\n\r\n")
    assert body == b'{"version"'
    assert b"Content-Length: 10\r\n" not in head + b"\r\n"


async def test_added_bytes_are_counted(serve):
    server = await serve("faults: [{at: 'reply:GET /sessions', bytes: {before: junk, after: more}}]")
    reply = await server.http.get("/sessions")
    assert reply.text == 'junk{"sessions":[]}more'
    assert (await server.http.get("/meta")).status_code == 200


async def test_a_split_reply_is_whole_in_the_end(serve):
    server = await serve("faults: [{at: GET /meta, split: {parts: 5}}]")
    assert (await server.http.get("/meta")).json()["version"] == 3


async def test_a_request_can_stay_without_an_answer(serve):
    server = await serve("faults: [{at: GET /meta, drop: true}]")
    stream = await trio.open_tcp_stream("127.0.0.1", server.port)
    async with stream:
        await stream.send_all(get("/meta"))
        await trio.testing.wait_all_tasks_blocked(0.01)
        assert server.seen.kinds("in") == ["GET /meta"]
        await stream.send_eof()
        with trio.fail_after(5):
            assert await stream.receive_some() == b""
    assert server.seen.kinds("out") == []


async def test_a_connection_can_be_reset_before_any_answer(serve):
    server = await serve("faults: [{at: GET /meta, drop: true, disconnect: reset}]")
    with pytest.raises(httpx.TransportError):
        await server.http.get("/meta")


async def test_faults_on_the_list(serve):
    server = await serve("""
sessions: {page_size: 1, stored: [{id: a}, {id: b}, {id: c}]}
faults: [{at: list, when: {nth: 2}, cursor: repeat}]
""")
    first = (await server.http.get("/sessions")).json()
    second = (await server.http.get("/sessions", params={"after": first["next"]})).json()
    assert second["next"] == first["next"]


async def test_a_fault_can_keep_the_agent_from_seeing_that_its_client_left(serve):
    server = await serve("""
turns: [{steps: [{say: one}, {wait_for: {method: list}}, {say: two}]}]
faults: [{at: cancel, drop: true}]
""")
    session = await server.create()
    async with server.streaming(session, "x") as stream:
        await stream.until("text_delta")
    while not server.seen.noted("left"):
        await trio.lowlevel.checkpoint()
    await server.http.get("/sessions")
    await server.host.backstage.quiet()
    history = await server.history(session)
    assert history[1]["content"] == [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]


async def test_a_peer_is_a_connection_and_its_end_is_noted(serve):
    server = await serve()
    client = h11.Connection(h11.CLIENT)
    stream = await trio.open_tcp_stream("127.0.0.1", server.port)
    async with stream:
        for _ in range(2):
            await stream.send_all(client.send(h11.Request(method="GET", target="/aap/meta", headers=[("Host", "x")])))
            client.send(h11.EndOfMessage())
            while not isinstance(event := client.next_event(), h11.EndOfMessage):
                if event is h11.NEED_DATA:
                    client.receive_data(await stream.receive_some())
            client.start_next_cycle()
    while not server.seen.noted("closed"):
        await trio.lowlevel.checkpoint()
    assert len(server.seen.noted("connected")) == 1
    assert {message.peer.id for message in server.seen.data} == {"c1"}
