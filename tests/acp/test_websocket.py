"""ACP over WebSocket: handshake, frames, ends, and sessions that outlive their connection."""

from __future__ import annotations

import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest
import trio
import trio_websocket
from trio.testing import wait_all_tasks_blocked

from mockagent.acp import websocket as binding
from mockagent.net.http_message import Limits
from mockagent.site import Settings
from mockagent.wire import line
from tests.network import CONNECTION, CWD, Served, Ws, said, serving

STORED = """
sessions:
  auto_title: null
  stored:
    - {id: sess_a, cwd: /home/dev/project, title: A, history: [{user: Why?}, {say: Because.}]}
    - {id: sess_b, cwd: /home/dev/project, title: B}
turns:
  - when: {prompt: ask}
    steps: [{tool: {id: look, title: Look, ask: true, output: "18"}}, {say: Done.}]
  - when: {prompt: pause}
    steps: [{say: one}, {wait_for: {method: _go}}, {say: two}]
  - steps: [{say: "You said: ${prompt}"}]
"""


def faults(*lines: str) -> str:
    """The scenario with faults."""
    return STORED + "legality: violation\nfaults:\n" + "".join(f"  - {line}\n" for line in lines)


HANDSHAKE = {
    "Connection": "Upgrade",
    "Upgrade": "websocket",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==",
}


async def shaken(mock: Served, headers: dict[str, str] | None = None) -> httpx.Response:
    """The answer to a handshake."""
    async with (
        httpx.AsyncClient(verify=False) as web,
        web.stream("GET", mock.url, headers=HANDSHAKE | (headers or {})) as reply,
    ):
        if reply.status_code != 101:
            await reply.aread()
        return reply


# --- handshake


async def test_the_handshake_gives_out_the_connections_id_and_a_cookie() -> None:
    async with serving(STORED) as mock, mock.ws() as client:
        headers = dict(client.socket.handshake_headers)
        assert headers[CONNECTION.lower().encode()].startswith(b"conn_")
        assert headers[b"set-cookie"].startswith(b"acp_affinity=conn_")
        await client.greet()
        assert mock.notes.of("connected")[0]["agent"] == "agent0"


async def test_a_connections_id_is_its_own() -> None:
    async with serving(STORED) as mock, mock.ws() as one, mock.ws() as other:
        ids = {dict(client.socket.handshake_headers)[CONNECTION.lower().encode()] for client in (one, other)}
        assert len(ids) == 2


async def test_each_agent_has_its_own_address() -> None:
    async with serving(STORED, "agent: {name: second}\n") as mock, mock.ws("/acp/agent1") as client:
        assert (await client.greet())["agentInfo"]["name"] == "second"


async def test_without_a_token_that_fits_there_is_no_handshake() -> None:
    async with serving("agent: {auth: {tokens: [secret-one]}}\n") as mock:
        assert (await shaken(mock)).status_code == 401
        async with mock.ws(extra_headers=[("Authorization", "Bearer secret-one")]) as client:
            await client.greet()
        async with mock.ws("/acp?access_token=secret-one") as client:
            await client.greet()


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ([("Origin", "https://evil.example")], 403),
        ([("Sec-WebSocket-Version", "8")], 426),
        ([("Sec-WebSocket-Key", "short")], 400),
    ],
)
async def test_a_bad_handshake_is_refused(headers: list[tuple[str, str]], status: int) -> None:
    async with serving(STORED) as mock:
        reply = await shaken(mock, dict(headers))
        assert reply.status_code == status
        assert reply.json()["error"]["message"]


@pytest.mark.parametrize("status", [401, 403, 404, 503])
async def test_the_handshake_can_be_refused_by_a_fault(status: int) -> None:
    async with serving(faults(f'{{at: "GET /acp", when: {{nth: 1}}, error: {{status: {status}}}}}')) as mock:
        assert (await shaken(mock)).status_code == status
        async with mock.ws() as client:
            await client.greet()


async def test_the_handshake_can_name_a_subprotocol_that_nobody_asked_for() -> None:
    text = faults('{at: "reply:GET /acp", edit: [{set: /http/headers/Sec-WebSocket-Protocol, to: other}]}')
    async with serving(text) as mock:
        reply = await shaken(mock)
        assert (reply.status_code, reply.headers["sec-websocket-protocol"]) == (101, "other")


async def test_the_handshake_can_be_a_redirect() -> None:
    edits = "[{set: /http/status, to: 302}, {set: /http/headers/Location, to: /elsewhere}]"
    async with serving(faults(f'{{at: "reply:GET /acp", edit: {edits}}}')) as mock:
        reply = await shaken(mock)
        assert (reply.status_code, reply.headers["location"]) == (302, "/elsewhere")


async def test_the_handshake_can_be_late() -> None:
    async with serving(faults('{at: "GET /acp", delay: 20s}')) as mock, mock.ws() as client:
        await client.greet()


# --- frames


async def test_binary_frames_that_hold_json_are_taken_and_text_comes_back() -> None:
    async with serving(STORED) as mock, mock.ws() as client:
        client.binary = True
        await client.greet()
        await client.prompt(await client.new())
        assert client.words() == "You said: go"


async def test_a_frame_that_holds_no_json_gets_an_error_and_the_connection_stays() -> None:
    async with serving(STORED) as mock, mock.ws() as client:
        await client.socket.send_message(b"\xff\xfe")
        await client.socket.send_message("{")
        await client.when(lambda: len(client.seen) == 2)
        assert [one["error"]["code"] for one in client.seen] == [-32700, -32700]
        await client.greet()


async def test_a_batch_is_answered_in_one_frame() -> None:
    async with serving(STORED) as mock, mock.ws() as client:
        await client.greet()
        pair: list[Any] = [{"jsonrpc": "2.0", "id": id, "method": "session/list", "params": {}} for id in (70, 71)]
        await client.send(pair)
        both = await client.when(lambda: next((one for one in client.seen if isinstance(one, list)), None))
        assert {one["id"] for one in both} == {70, 71}


# --- pings


async def test_pings_are_answered_unless_a_fault_ignores_them() -> None:
    async with serving(faults("{at: ping, when: {nth: 2}, ignore: [ping]}")) as mock, mock.ws() as client:
        await client.greet()
        await client.socket.ping(b"first")
        with trio.move_on_after(0.05) as waiting:
            await client.socket.ping(b"second")
        assert waiting.cancelled_caught
        await client.new()


async def test_a_connection_can_stop_answering_pings_from_its_start() -> None:
    async with serving(faults("{at: connected, ignore: [ping]}")) as mock, mock.ws() as client:
        await client.greet()
        with trio.move_on_after(0.05) as waiting:
            await client.socket.ping(b"x")
        assert waiting.cancelled_caught


async def test_a_peer_that_answers_no_ping_counts_as_dead(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(binding, "PING_INTERVAL", 0.01)
    monkeypatch.setattr(binding, "PING_PATIENCE", 0.05)
    async with serving(STORED) as mock:
        silent = await trio.open_tcp_stream("127.0.0.1", mock.port)
        await silent.send_all(
            b"GET /acp HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
            b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
        )
        assert (await mock.notes.until("closed"))["why"] == "no pong"
        await silent.aclose()


# --- ends


async def test_the_end_of_the_server_is_told_with_code_1001() -> None:
    async with serving(STORED) as mock, mock.ws() as client:
        await client.greet()
        mock.site.stop()
        await client.closed.wait()
        assert client.code == 1001


async def test_a_clients_code_is_noted() -> None:
    async with serving(STORED) as mock, mock.ws() as client:
        await client.greet()
        await client.socket.aclose(4000, "enough")
        assert await mock.notes.until("closed") == {"code": 4000, "reason": "enough"}


# --- sessions outlive connections


async def test_after_a_drop_a_client_comes_again_and_loads_its_session() -> None:
    async with serving(faults('{at: "reply:session/prompt", when: {nth: 1}, disconnect: reset}')) as mock:
        async with mock.ws() as client:
            await client.greet()
            session = await client.new()
            await client.ask("session/prompt", said(session, "remember"))
            await client.closed.wait()
        async with mock.ws() as client:
            await client.greet()
            reply = await client.load(session)
            assert "result" in reply
            assert client.words() == "You said: remember"
            assert client.words("user_message_chunk") == "remember"
            assert (await client.prompt(session))["result"] == {"stopReason": "end_turn"}


async def test_a_turn_goes_on_without_its_client_and_whoever_loads_hears_the_rest() -> None:
    async with serving(STORED) as mock:
        async with mock.ws() as client:
            await client.greet()
            session = await client.new()
            await client.ask("session/prompt", said(session, "pause"))
            await client.until("agent_message_chunk")
        await mock.notes.until("closed")
        async with mock.ws() as client:
            await client.greet()
            await client.load(session)
            assert client.words() == "one"
            await client.send({"jsonrpc": "2.0", "method": "_go", "params": {"sessionId": session}})
            await client.when(lambda: client.words() == "onetwo")


async def test_a_question_fails_when_its_client_goes() -> None:
    async with serving(STORED) as mock:
        async with mock.ws() as client:
            client.answers["session/request_permission"] = None
            await client.greet()
            session = await client.new()
            await client.ask("session/prompt", said(session, "ask"))
            await client.when(lambda: any("request_permission" in str(one) for one in client.seen))
        await mock.notes.until("closed")
        async with mock.ws() as client:
            await client.greet()
            await client.load(session)
            await client.when(lambda: "Done." in client.words())


async def both(mock: Served, one: Ws, other: Ws) -> str:
    """Two clients with one session open; the first has made it."""
    await one.greet()
    await other.greet()
    session = await one.new()
    await other.load(session)
    return session


async def test_two_clients_of_one_session_hear_the_same_turn_and_only_one_is_answered() -> None:
    async with serving(STORED) as mock, mock.ws() as one, mock.ws() as other:
        session = await both(mock, one, other)
        other.answers["session/request_permission"] = None
        await one.prompt(session, "ask")
        await other.until("agent_message_chunk")
        assert one.words() == other.words() == "Done."
        assert [body["sessionUpdate"] for body in one.updates()] == [body["sessionUpdate"] for body in other.updates()]
        assert any("request_permission" in str(message) for message in one.seen)
        assert not any("request_permission" in str(message) for message in other.seen)
        assert not any("stopReason" in str(message) for message in other.seen)


async def test_either_client_of_a_session_may_prompt_and_either_may_cancel() -> None:
    async with serving(STORED) as mock, mock.ws() as one, mock.ws() as other:
        session = await both(mock, one, other)
        prompt = await other.ask("session/prompt", said(session, "pause"))
        await one.until("agent_message_chunk")
        await one.send({"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": session}})
        assert (await other.reply(prompt))["result"] == {"stopReason": "cancelled"}


async def test_what_a_turn_says_after_its_client_has_gone_is_heard_by_the_other() -> None:
    async with serving(STORED) as mock, mock.ws() as other:
        async with mock.ws() as one:
            session = await both(mock, one, other)
            await one.ask("session/prompt", said(session, "pause"))
            await other.until("agent_message_chunk")
        await mock.notes.until("closed")
        await other.send({"jsonrpc": "2.0", "method": "_go", "params": {"sessionId": session}})
        await other.when(lambda: other.words() == "onetwo")


async def test_a_client_that_listed_a_session_hears_its_news_without_opening_it() -> None:
    text = STORED + "schedule: [{event: session_listed, session: sess_b, steps: [{info: {title: New}}]}]\n"
    async with serving(text) as mock, mock.ws() as client:
        await client.greet()
        await client.call("session/list")
        assert (await client.until("session_info_update"))["title"] == "New"


async def test_one_session_closed_by_one_client_is_closed_for_both() -> None:
    async with serving(STORED) as mock, mock.ws() as one, mock.ws() as other:
        session = await both(mock, one, other)
        await one.call("session/close", {"sessionId": session})
        reply = await other.prompt(session)
        assert reply["error"]["data"]["reason"] == "session_inactive"


# --- a client that does not read

FLOOD = """
sessions: {auto_title: null}
turns:
  - when: {prompt: flood}
    steps: [{repeat: {times: 40, steps: [{say: "%s"}]}}]
  - steps: [{say: fine}]
""" % ("x" * 200_000)


@asynccontextmanager
async def unread(mock: Served) -> AsyncIterator[trio_websocket.WebSocketConnection]:
    """A client with small buffers that reads nothing but what it asks for."""
    sock = trio.socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    await sock.connect(("127.0.0.1", mock.port))
    with sock:
        yield await trio_websocket.wrap_client_stream(
            mock.nursery,
            trio.SocketStream(sock),
            f"127.0.0.1:{mock.port}",
            "/acp",
            message_queue_size=1,
            max_message_size=2**20,
        )


async def test_a_client_that_does_not_read_slows_its_own_turn_and_nothing_else(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(line, "QUEUE_BYTES", 400_000)
    async with serving(FLOOD) as mock, mock.ws() as other, unread(mock) as quiet:
        slow = Ws(mock.nursery, quiet)
        mock.nursery.start_soon(slow_reader, slow, 3)  # the answers to initialize and session/new, and one chunk
        await slow.greet()
        session = await slow.new()
        await slow.ask("session/prompt", said(session, "flood"))
        await other.greet()
        for _ in range(20):
            await other.prompt(await other.new())
        left = mock.notes.sent("update:agent_message_chunk") - 20
        assert 0 < left < 30  # what the sockets hold; the rest has not even been made
        assert not mock.notes.messages_of("reply:session/prompt", "out")[20:]
        [held] = [out for out in mock.host.backstage.connections.values() if out.peer.id == "c2"]
        assert held.line(session).room == 0
        mock.nursery.start_soon(slow.read)
        await slow.when(lambda: len(slow.updates()) == 40)
        assert (await slow.reply(3))["result"] == {"stopReason": "end_turn"}


async def slow_reader(client: Ws, count: int) -> None:
    """Reads so many messages and then no more."""
    import json

    for _ in range(count):
        client.took(json.loads(await client.socket.get_message()))


async def test_memory_stays_bounded_when_nobody_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Requests whose answers nobody takes are not read any more."""
    monkeypatch.setattr(line, "FLOOD_BYTES", 100_000)
    async with serving(STORED) as mock, unread(mock) as quiet:
        text = '{"jsonrpc":"2.0","id":%d,"method":"session/nothing","params":{"pad":"%s"}}'

        async def flood() -> None:
            for number in range(2_000):
                await quiet.send_message(text % (number, "x" * 10_000))

        async with trio.open_nursery() as flooding:
            flooding.start_soon(flood)
            await wait_all_tasks_blocked(0.1)
            assert len(mock.notes.messages_of("session/nothing", "in")) < 2_000
            [out] = mock.host.backstage.connections.values()
            assert out.line(None)._bytes < 200_000
            flooding.cancel_scope.cancel()


async def test_a_slow_stream_over_http_slows_its_own_turn_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(line, "QUEUE_BYTES", 400_000)
    async with serving(FLOOD) as mock, mock.http() as slow, mock.http() as other:
        slow.opens_streams = False
        await slow.greet()
        await slow.open(None)
        session: Any = (await slow.call("session/new", {"cwd": CWD, "mcpServers": []}))["result"]["sessionId"]
        await slow.ask("session/prompt", said(session, "flood"))  # its stream is not even open
        await other.greet()
        await other.prompt(await other.new())
        assert mock.notes.sent("update:agent_message_chunk") == 1
        await slow.open(session)
        await slow.when(lambda: len(slow.updates()) == 40)


async def test_no_message_over_the_limit_is_taken() -> None:
    async with serving(STORED) as mock, mock.ws() as client:
        await client.greet()
        with pytest.raises(trio_websocket.ConnectionClosed):
            while True:
                await client.socket.send_message("x" * (65 * 2**20))
                await trio.lowlevel.checkpoint()
        assert client.code == 1009


async def test_a_client_that_never_ends_its_headers_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    from mockagent import site

    monkeypatch.setattr(site, "LIMITS", Limits(header_seconds=0.05))
    async with (
        serving(STORED, settings=Settings(port=0)) as mock,
        await trio.open_tcp_stream("127.0.0.1", mock.port) as stream,
    ):
        await stream.send_all(b"GET /acp HTTP/1.1\r\nHost: localhost\r\nX-Slow: ")
        data = b""
        while piece := await stream.receive_some():
            data += piece
        assert data.startswith(b"HTTP/1.1 408 ")


# --- faults on frames and ends


@pytest.mark.parametrize(
    ("how", "code"),
    [("close", 1000), ("{code: 4001, reason: enough}", 4001), ("{code: 1012}", 1012), ("reset", 1006), ("half", 1006)],
)
async def test_a_connection_can_end_in_the_middle_of_a_turn(how: str, code: int) -> None:
    async with serving(faults(f"{{at: say, when: {{nth: 1}}, disconnect: {how}}}")) as mock, mock.ws() as client:
        await client.greet()
        await client.ask("session/prompt", said(await client.new(), "pause"))
        await client.closed.wait()
        assert client.words() == "one"
        assert client.code == code


@pytest.mark.parametrize(
    ("effect", "kind", "end"),
    [
        ("binary: true", bytes, "}"),
        ("newline: crlf", str, "\r\n"),
        ("split: {parts: 3, into: frames}", str, "}"),
        ("escape: ascii", str, "}"),
    ],
)
async def test_a_message_can_have_another_shape(effect: str, kind: type, end: str) -> None:
    async with serving(faults(f"{{at: say, {effect}}}")) as mock, unread(mock) as quiet:
        raw = Ws(mock.nursery, quiet)
        mock.nursery.start_soon(slow_reader, raw, 2)
        await raw.greet()
        session = await raw.new()
        await raw.ask("session/prompt", said(session, "héllo"))
        message = await quiet.get_message()
        assert type(message) is kind
        text = message.decode() if isinstance(message, bytes) else message
        assert text.endswith(end)
        assert json.loads(text)["params"]["update"]["content"]["text"] == "You said: héllo"
        assert text.isascii() is ("ascii" in effect)


async def test_a_message_can_go_missing_and_another_come_twice() -> None:
    text = faults("{at: say, when: {nth: 1}, drop: true}", "{at: say, when: {nth: 1}, copies: 2}")
    async with serving(text) as mock, mock.ws() as client:
        await client.greet()
        session = await client.new()
        await client.prompt(session, "1")
        await client.prompt(session, "2")
        assert client.words() == "You said: 2" * 2
