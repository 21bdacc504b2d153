"""Faults over Streamable HTTP: on the requests themselves, on `initialize`, and on the events of a stream."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import h11
import httpx
import pytest
import trio

from mockagent.acp import stream as streams
from mockagent.message import Fate
from mockagent.net.sse import SseComment, SseEvent, SseParser
from mockagent.scenario.load import load_text
from tests.network import CONNECTION, CWD, SSE, Http, Served, said, serving

HONEST = """
sessions: {auto_title: null}
turns: [{steps: [{say: one}, {say: two}, {say: three}]}]
"""
INITIALIZE = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": 1}}


def faults(*lines: str) -> str:
    """The scenario with faults."""
    return HONEST + "legality: violation\nfaults:\n" + "".join(f"  - {line}\n" for line in lines)


class Raw:
    """A stream of which every byte is kept.

    Attributes:
        body: the body so far.
        ended: how it ended: `end` (with its last chunk), `eof`, `reset`; None: it has not.
    """

    def __init__(self, socket: trio.SocketStream) -> None:
        self.socket = socket
        self.status = 0
        self.headers: dict[str, str] = {}
        self.body = b""
        self.ended: str | None = None
        self._h11 = h11.Connection(h11.CLIENT)

    async def get(self, client: Http, session: str | None, port: int) -> None:
        """Sends the GET, and reads up to the end of the answer's head."""
        headers = [("Host", f"127.0.0.1:{port}"), *(SSE | client.headers(session)).items()]
        data = self._h11.send(h11.Request(method="GET", target="/acp", headers=headers)) or b""
        await self.socket.send_all(data + (self._h11.send(h11.EndOfMessage()) or b""))
        while not self.status and self.ended is None:
            await self._more()

    async def until(self, mark: bytes) -> bytes:
        """Reads up to a mark; returns the body up to there."""
        while mark not in self.body and self.ended is None:
            await self._more()
        return self.body

    async def rest(self) -> bytes:
        """Reads up to the end."""
        while self.ended is None:
            await self._more()
        return self.body

    async def _more(self) -> None:
        event = self._next()
        if event is h11.NEED_DATA:
            try:
                data = await self.socket.receive_some()
            except trio.BrokenResourceError:
                self.ended = "reset"
                return
            if not data:
                self.ended = "eof"
                return
            self._h11.receive_data(data)
        elif isinstance(event, h11.Response):
            self.status = event.status_code
            self.headers = {name.decode(): value.decode() for name, value in event.headers}
        elif isinstance(event, h11.Data):
            self.body += bytes(event.data)
        elif isinstance(event, h11.EndOfMessage):
            self.ended = "end"

    def _next(self) -> Any:
        return self._h11.next_event()


@asynccontextmanager
async def raw(mock: Served, client: Http, session: str | None) -> AsyncIterator[Raw]:
    """Opens a stream and keeps its bytes."""
    async with await trio.open_tcp_stream("127.0.0.1", mock.port) as socket:
        reader = Raw(socket)
        await reader.get(client, session, mock.port)
        yield reader


async def begun(client: Http) -> str:
    """A session whose stream is not open."""
    await client.greet()
    id: str = (await client.call("session/new", {"cwd": CWD, "mcpServers": []}))["result"]["sessionId"]
    return id


# --- on requests


async def test_a_post_can_be_refused_with_a_status_and_headers() -> None:
    text = faults('{at: "POST /acp", when: {nth: 3}, error: {status: 503, headers: {Retry-After: "7"}, body: busy}}')
    async with serving(text) as mock, mock.http() as client:
        await client.greet()
        await client.new()
        reply = await client.post({"jsonrpc": "2.0", "id": 9, "method": "session/list", "params": {}})
        assert (reply.status_code, reply.headers["retry-after"], reply.text) == (503, "7", "busy")
        assert mock.notes.messages_of("session/list", "in") == []
        assert mock.notes.of("fault")[0]["at"] == "POST /acp"
        assert "sessions" in (await client.call("session/list"))["result"]


async def test_the_first_post_can_be_refused_before_there_is_a_connection() -> None:
    async with (
        serving(faults('{at: "POST /acp", when: {nth: 1}, error: auth_required}')) as mock,
        httpx.AsyncClient(verify=False) as web,
    ):
        refused = await web.post(mock.url, json=INITIALIZE)
        assert (refused.status_code, refused.headers["www-authenticate"]) == (401, "Bearer")
        assert (await web.post(mock.url, json=INITIALIZE)).status_code == 200


async def test_the_reply_to_a_post_can_be_edited_although_its_message_is_taken() -> None:
    text = faults('{at: "reply:POST /acp", when: {nth: 2}, edit: [{set: /http/status, to: 500}]}')
    async with serving(text) as mock, mock.http() as client:
        await client.greet()
        reply = await client.post({"jsonrpc": "2.0", "id": 9, "method": "session/list", "params": {}})
        assert reply.status_code == 500
        await client.reply(9)


async def test_a_dropped_post_is_never_answered_and_never_taken() -> None:
    async with serving(faults('{at: "POST /acp", when: {nth: 2}, drop: true}')) as mock, mock.http() as client:
        await client.greet()
        with trio.move_on_after(0.1) as waiting:
            await client.post({"jsonrpc": "2.0", "id": 9, "method": "session/list", "params": {}})
        assert waiting.cancelled_caught
        assert mock.notes.messages_of("session/list", "in") == []
        assert await client.new()


async def test_a_post_can_lose_its_connection() -> None:
    async with serving(faults('{at: "POST /acp", when: {nth: 2}, disconnect: reset}')) as mock, mock.http() as client:
        await client.greet()
        with pytest.raises((httpx.ReadError, httpx.RemoteProtocolError)):
            await client.post({"jsonrpc": "2.0", "id": 9, "method": "session/list", "params": {}})
        assert await client.new()


async def test_a_stream_can_be_refused_and_opened_later() -> None:
    async with (
        serving(faults('{at: "GET /acp", when: {nth: 1, per: process}, error: {status: 404}}')) as mock,
        mock.http() as client,
    ):
        client.opens_streams = False
        await client.greet()
        refused = await client.web.get(mock.url, headers=SSE | client.headers())
        assert refused.status_code == 404
        await client.open(None)
        client.opens_streams = True
        assert await client.new()


async def test_a_streams_head_can_be_edited() -> None:
    text = faults('{at: "reply:GET /acp", edit: [{set: /http/headers/Content-Type, to: text/plain}]}')
    async with serving(text) as mock, mock.http() as client:
        client.opens_streams = False
        await client.greet()
        async with raw(mock, client, None) as stream:
            assert (stream.status, stream.headers["content-type"]) == (200, "text/plain")


async def test_a_delete_can_fail_and_the_connection_stays() -> None:
    async with (
        serving(faults('{at: "DELETE /acp", when: {nth: 1}, error: internal_error}')) as mock,
        mock.http() as client,
    ):
        await client.greet()
        assert (await client.delete()).status_code == 500
        assert await client.new()
        assert (await client.delete()).status_code == 202


# --- on initialize


async def test_initialize_can_fail_as_a_message() -> None:
    async with serving(faults("{at: initialize, error: overloaded}")) as mock, httpx.AsyncClient(verify=False) as web:
        reply = await web.post(mock.url, json=INITIALIZE)
        assert reply.status_code == 200
        assert reply.json()["error"]["data"] == {"reason": "overloaded"}


async def test_the_bytes_of_the_answer_to_initialize_can_be_damaged() -> None:
    async with serving(faults('{at: "reply:initialize", bytes: {before: "hello "}}')) as mock:
        async with httpx.AsyncClient(verify=False) as web:
            reply = await web.post(mock.url, json=INITIALIZE)
            assert reply.text.startswith('hello {"jsonrpc"')
            assert int(reply.headers["content-length"]) == len(reply.content)
            assert CONNECTION in reply.headers
        assert mock.notes.messages_of("reply:initialize", "out") == [Fate.DAMAGED]


async def test_the_answer_to_initialize_can_be_cut_off() -> None:
    async with (
        serving(faults('{at: "reply:initialize", truncate: 10, disconnect: close}')) as mock,
        httpx.AsyncClient(verify=False) as web,
    ):
        with pytest.raises(httpx.RemoteProtocolError):
            await web.post(mock.url, json=INITIALIZE)


async def test_an_answer_to_initialize_that_never_comes_leaves_no_connection_behind() -> None:
    async with serving(faults("{at: initialize, drop: true}")) as mock, httpx.AsyncClient(verify=False) as web:
        with trio.move_on_after(0.1):
            await web.post(mock.url, json=INITIALIZE)
        assert (await mock.notes.until("closed"))["why"] == "the client left before initialize was answered"


async def test_the_answer_to_initialize_can_be_late() -> None:
    async with serving(faults("{at: initialize, delay: 20s}")) as mock, mock.http() as client:
        await client.greet()
        assert await client.new()


# --- on events

SHAPES: list[tuple[str, list[str], bytes]] = [
    ("comment", ["comment: keep-alive"], b": keep-alive\ndata: {"),
    ("no_blank", ["no_blank: true"], b'one"}}}}\ndata: {'),
    ("crlf", ["newline: crlf"], b'one"}}}}\r\n\r\ndata: {'),
    ("cr", ["newline: cr"], b'one"}}}}\r\rdata: {'),
    ("event name", ["event_name: surprise"], b"event: surprise\ndata: {"),
    ("foreign bytes", ['bytes: {before: "x: y\\n"}'], b"x: y\ndata: {"),
    ("another event in two", ["split: {parts: 2, into: messages}"], b"\n\ndata: "),
    ("copies", ["copies: 2"], b'one"}}}}\n\ndata: {"jsonrpc":"2.0","method":"session/update"'),
]


@pytest.mark.parametrize(("effect", "wanted"), [row[1:] for row in SHAPES], ids=[row[0] for row in SHAPES])
async def test_an_event_can_have_another_shape(effect: list[str], wanted: bytes) -> None:
    text = faults(f'{{at: "update:agent_message_chunk", when: {{nth: 1}}, {", ".join(effect)}}}')
    async with serving(text) as mock, mock.http() as client:
        session = await begun(client)
        async with raw(mock, client, session) as stream:
            await client.ask("session/prompt", said(session, "x"))
            body = await stream.until(b"stopReason")
            assert wanted in body
            assert b"three" in body


async def test_a_split_event_is_whole_for_a_parser() -> None:
    async with serving(faults("{at: say, split: {at: [3, 9, 20], pause: 1ms}}")) as mock, mock.http() as client:
        session = await begun(client)
        async with raw(mock, client, session) as stream:
            await client.ask("session/prompt", said(session, "x"))
            made = SseParser(comments=True).feed(await stream.until(b"stopReason"))
            assert [event.text for event in made if isinstance(event, SseComment)] == []
            assert "one" in next(event for event in made if isinstance(event, SseEvent)).text


@pytest.mark.parametrize(
    ("how", "end"), [("close", "end"), ("reset", "reset"), ("half", "eof"), ("{code: 4001, reason: x}", "end")]
)
async def test_a_stream_can_end_in_the_middle_of_a_turn(how: str, end: str) -> None:
    text = faults(f"{{at: say, when: {{nth: 2}}, disconnect: {how}}}")
    async with serving(text) as mock, mock.http() as client:
        session = await begun(client)
        async with raw(mock, client, session) as stream:
            await client.ask("session/prompt", said(session, "x"))
            body = await stream.rest()
            assert b"two" in body
            assert b"three" not in body
            assert stream.ended == end
        await client.open(session)  # the session goes on, and what had not left comes now
        await client.when(lambda: "three" in client.words())


async def test_a_disconnect_ends_the_stream_of_its_message_alone() -> None:
    text = faults("{at: say, when: {nth: 1}, disconnect: close}")
    async with serving(text) as mock, mock.http() as client:
        await client.greet()
        one, other = await client.new(), await client.new()
        await client.ask("session/prompt", said(one, "x"))
        await client.when(lambda: one in client.ended)
        assert client.ended == [one]
        assert "sessions" in (await client.call("session/list"))["result"]
        await client.load(other)


async def test_a_message_can_be_missing_from_a_stream() -> None:
    async with serving(faults("{at: say, when: {nth: 2}, drop: true}")) as mock, mock.http() as client:
        await client.greet()
        await client.prompt(await client.new())
        assert client.words() == "onethree"
        assert mock.notes.messages_of("update:agent_message_chunk", "out").count(Fate.UNSENT) == 1


async def test_a_truncated_event_ends_where_it_is_cut() -> None:
    async with (
        serving(faults("{at: say, when: {nth: 2}, truncate: 30, disconnect: reset}")) as mock,
        mock.http() as client,
    ):
        session = await begun(client)
        async with raw(mock, client, session) as stream:
            await client.ask("session/prompt", said(session, "x"))
            body = await stream.rest()
            assert body.endswith(b'data: {"jsonrpc":"2.0","method')


# --- what a stream that is opened again gets

RESENT = [
    (None, "three"),
    ("unseen", "twothree"),
    ("all", "onetwothree"),
    ("none", ""),
]


@pytest.mark.parametrize(("which", "words"), RESENT)
async def test_what_a_reopened_stream_gets_of_the_past(which: str | None, words: str) -> None:
    """The second event arrives in part, then the stream ends; the third waits."""
    again = [] if which is None else [f'{{at: "GET /acp", when: {{nth: 2}}, resend: {which}}}']
    text = faults("{at: say, when: {nth: 2}, truncate: 30, disconnect: reset}", *again)
    async with serving(text) as mock, mock.http() as client:
        session = await begun(client)
        async with raw(mock, client, session) as stream:
            prompt = await client.ask("session/prompt", said(session, "x"))
            await stream.rest()
        await mock.notes.when(lambda: not mock.host.agents[0].playing)
        client.seen.clear()
        await client.open(session)
        if which == "none":
            assert mock.notes.messages_of("reply:session/prompt", "out") == [Fate.UNSENT]
            await client.call("session/close", {"sessionId": session})
        else:
            await client.reply(prompt)
        assert client.words() == words


# --- signs of life


async def test_a_silent_stream_shows_a_sign_of_life(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "SIGN_OF_LIFE", 0.01)
    async with serving(HONEST) as mock, mock.http() as client:
        session = await begun(client)
        async with raw(mock, client, session) as stream:
            assert await stream.until(b":") == b": \n\n"


async def test_signs_of_life_can_be_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "SIGN_OF_LIFE", 0.01)
    async with serving(faults("{at: ping, ignore: [ping]}")) as mock, mock.http() as client:
        session = await begun(client)
        async with raw(mock, client, session) as stream:
            await mock.notes.when(lambda: len(mock.notes.of("fault")) > 3)
            await client.ask("session/prompt", said(session, "x"))
            assert (await stream.until(b"data")).startswith(b"data")


def test_the_example_on_the_page_about_transports_is_a_scenario() -> None:
    page = (Path(__file__).parents[2] / "docs" / "transports.md").read_text(encoding="utf-8")
    [example] = re.findall(r"^```yaml\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    scenario = load_text(f"name: page\nsummary: The page.\nlegality: violation\n{example}")
    assert [fault.at for fault in scenario.faults] == ["POST /acp", "GET /acp", "reply:GET /acp", "DELETE /acp"]
