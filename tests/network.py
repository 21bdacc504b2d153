"""ACP clients that connect, for tests: over WebSocket and Streamable HTTP, to a server in the test's own event loop.

They speak through real sockets and know nothing of the mock. What they read can be looked at; requests of the agent are
answered at once.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import httpx
import trio
import trio_websocket

from mockagent.host import Host, Options
from mockagent.message import Burst, Direction, Fate, Message, Peer
from mockagent.scenario.load import load_text
from mockagent.scenario.model import Scenario
from mockagent.script.driver import drive
from mockagent.site import Settings, Site

Json = dict[str, Any]

PATIENCE = 20
"""Seconds after which a test counts as stuck."""

CWD = "/home/dev/project"
SSE = {"Accept": "text/event-stream"}
CONNECTION, SESSION = "Acp-Connection-Id", "Acp-Session-Id"


class Notes:
    """A tap that keeps notes, and what left and came."""

    def __init__(self) -> None:
        self.notes: list[tuple[str, str | None, Json]] = []
        self.messages: list[tuple[str, Direction, Fate, str]] = []
        self.news = trio.Event()

    def saw(self, message: Message, direction: Direction, fate: Fate) -> None:
        self.messages.append((message.kind, direction, fate, message.peer.id))
        self._tell()

    def saw_burst(self, burst: Burst) -> None:
        self.messages += [(burst.kind, "out", Fate.INTACT, burst.peer.id)] * len(burst.texts)
        self._tell()

    def malformed(self, peer: Peer, data: bytes, why: str) -> None:
        self.note("malformed", peer, None, {"why": why})

    def note(self, event: str, peer: Peer | None, session: str | None, detail: Json) -> None:
        self.notes.append((event, None if peer is None else peer.id, detail))
        self._tell()

    def lost(self, peer: Peer, count: int) -> None:
        self.note("lost", peer, None, {"count": count})

    def close(self) -> None:
        """There is nothing to write."""

    def _tell(self) -> None:
        self.news.set()
        self.news = trio.Event()

    def of(self, event: str) -> list[Json]:
        """The details of all notes of one kind."""
        return [detail for name, _, detail in self.notes if name == event]

    def sent(self, kind: str, fate: Fate = Fate.INTACT) -> int:
        """How many messages of a kind have left."""
        return self.messages_of(kind, "out").count(fate)

    def messages_of(self, kind: str, direction: Direction) -> list[Fate]:
        return [fate for name, way, fate, _ in self.messages if name == kind and way == direction]

    async def until(self, event: str, count: int = 1) -> Json:
        """Waits for so many notes of one kind; returns the last."""
        return await self.when(lambda: found[count - 1] if len(found := self.of(event)) >= count else None)

    async def when(self, ready: Callable[[], Any]) -> Any:
        """Waits until something is true; looks again at whatever the tap sees."""
        while not (found := ready()):
            await self.news.wait()
        return found


class Served:
    """A running server."""

    def __init__(self, host: Host, site: Site, port: int, notes: Notes, nursery: trio.Nursery) -> None:
        self.host = host
        self.site = site
        self.port = port
        self.notes = notes
        self.nursery = nursery
        self.url = f"http://127.0.0.1:{port}/acp"

    @asynccontextmanager
    async def ws(self, path: str = "/acp", **options: Any) -> AsyncIterator[Ws]:
        """A client over WebSocket."""
        stream = await trio.open_tcp_stream("127.0.0.1", self.port)
        try:
            socket = await trio_websocket.wrap_client_stream(
                self.nursery, stream, f"127.0.0.1:{self.port}", path, max_message_size=2**26, **options
            )
            client = Ws(self.nursery, socket)
            self.nursery.start_soon(client.read)
            yield client
            await socket.aclose()
        finally:
            stream.socket.close()

    @asynccontextmanager
    async def http(self, path: str = "/acp", **headers: str) -> AsyncIterator[Http]:
        """A client over Streamable HTTP; it has said nothing yet."""
        async with httpx.AsyncClient(timeout=None, headers=headers, limits=NO_LIMITS, verify=False) as web:
            yield Http(self.nursery, web, f"http://127.0.0.1:{self.port}{path}")


NO_LIMITS = httpx.Limits(max_connections=None, max_keepalive_connections=None)


@asynccontextmanager
async def serving(
    *scenarios: str | Scenario, speed: float | None = 0, settings: Settings | None = None, patience: float = PATIENCE
) -> AsyncIterator[Served]:
    """A server for scenarios, closed at the end of the block.

    Args:
        scenarios: YAML texts (names are added), or what was made of them.
        speed: see `Options`; 0 waits for nothing.
        settings: in place of any free port.
        patience: seconds after which the test counts as stuck.
    """
    models = [
        load_text(f"name: agent{number}\nsummary: Plays.\n{text}") if isinstance(text, str) else text
        for number, text in enumerate(scenarios or ("",))
    ]
    notes = Notes()
    host = Host(models, Options(speed=speed), taps=[notes])
    host.backstage.complain = lambda text: None  # type: ignore[method-assign]
    site = Site(host.backstage, settings or Settings(port=0))
    with trio.fail_after(patience):
        async with trio.open_nursery() as nursery:
            host.backstage.start()
            nursery.start_soon(drive, host.stage)
            port = await nursery.start(site.run)
            yield Served(host, site, port, notes, nursery)
            nursery.cancel_scope.cancel()


class Talker:
    """A client, whatever carries its messages.

    Attributes:
        seen: what it has read, in order.
        answers: what it answers to requests, by method; None: nothing.
    """

    def __init__(self, nursery: trio.Nursery) -> None:
        self.nursery = nursery
        self.seen: list[Any] = []
        self.answers: dict[str, Any] = {"session/request_permission": _first_option}
        self.news = trio.Event()
        self._asked = 0
        self._answering: trio.MemorySendChannel[Json]
        self._answering, queue = trio.open_memory_channel[Json](10_000)
        nursery.start_soon(self._answer, queue)

    async def send(self, message: Json | list[Any], session: str | None = None) -> None:
        """Writes a message that is about a session, or none."""
        raise NotImplementedError

    def took(self, message: Any) -> None:
        """Something has come."""
        self.seen.append(message)
        if isinstance(message, dict) and "method" in message and "id" in message:
            self._answering.send_nowait(message)
        self.news.set()
        self.news = trio.Event()

    async def _answer(self, queue: trio.MemoryReceiveChannel[Json]) -> None:
        async for asked in queue:
            answer = self.answers.get(asked["method"], {})
            result = answer(asked["params"]) if callable(answer) else answer
            if result is not None:
                body = {"jsonrpc": "2.0", "id": asked["id"], "result": result}
                await self.send(body, asked["params"].get("sessionId"))

    # --- a conversation

    async def ask(self, method: str, params: Any = None) -> int:
        """Sends a request; returns its id."""
        self._asked += 1
        params = {} if params is None else params
        message = {"jsonrpc": "2.0", "id": self._asked, "method": method, "params": params}
        id = self._asked
        await self.send(message, params.get("sessionId"))
        return id

    async def reply(self, id: Any) -> Json:
        """Waits for the reply to a request."""
        return await self.when(lambda: next((one for one in self.seen if _is_reply(one, id)), None))

    async def when(self, ready: Callable[[], Any]) -> Any:
        """Waits until something is true; looks again whenever something comes."""
        while not (found := ready()):
            await self.news.wait()
        return found

    async def call(self, method: str, params: Any = None) -> Json:
        """A request and its reply."""
        return await self.reply(await self.ask(method, params))

    async def greet(self, **capabilities: Any) -> Json:
        """Introduces itself; returns the result."""
        result: Json = (await self.call("initialize", {"protocolVersion": 1, "clientCapabilities": capabilities}))[
            "result"
        ]
        return result

    async def new(self) -> str:
        """Makes a session; returns its id."""
        id: str = (await self.call("session/new", {"cwd": CWD, "mcpServers": []}))["result"]["sessionId"]
        return id

    async def load(self, session: str) -> Json:
        """Loads a session."""
        return await self.call("session/load", {"sessionId": session, "cwd": CWD, "mcpServers": []})

    async def prompt(self, session: str, text: str = "go") -> Json:
        """Plays one turn; returns the reply."""
        return await self.call("session/prompt", said(session, text))

    # --- what came

    def updates(self, kind: str | None = None) -> list[Json]:
        """The bodies of all updates, of one kind if it is given."""
        found = [one["params"]["update"] for one in self.seen if one.get("method") == "session/update"]
        return [body for body in found if kind is None or body["sessionUpdate"] == kind]

    def words(self, kind: str = "agent_message_chunk") -> str:
        """All text of one kind."""
        return "".join(body["content"]["text"] for body in self.updates(kind))

    async def until(self, kind: str, count: int = 1) -> Json:
        """Waits for so many updates of a kind; returns the last."""
        return await self.when(lambda: found[count - 1] if len(found := self.updates(kind)) >= count else None)


def _first_option(params: Json) -> Json:
    if not params["options"]:
        return {"outcome": {"outcome": "cancelled"}}
    return {"outcome": {"outcome": "selected", "optionId": params["options"][0]["optionId"]}}


def said(session: str, text: str) -> Json:
    """The params of a prompt."""
    return {"sessionId": session, "prompt": [{"type": "text", "text": text}]}


def _is_reply(message: Any, id: Any) -> bool:
    return isinstance(message, dict) and "method" not in message and message.get("id") == id


class Ws(Talker):
    """A client over WebSocket."""

    def __init__(self, nursery: trio.Nursery, socket: trio_websocket.WebSocketConnection) -> None:
        super().__init__(nursery)
        self.socket = socket
        self.closed = trio.Event()
        self.binary = False

    async def send(self, message: Json | list[Any], session: str | None = None) -> None:
        text = json.dumps(message)
        await self.socket.send_message(text.encode() if self.binary else text)

    async def read(self) -> None:
        """Takes what comes until the WebSocket ends."""
        try:
            while True:
                self.took(json.loads(await self.socket.get_message()))
        except trio_websocket.ConnectionClosed:
            self.closed.set()
            self.news.set()

    @property
    def code(self) -> int | None:
        """The close code, once there is one."""
        return None if self.socket.closed is None else self.socket.closed.code


class Http(Talker):
    """A client over Streamable HTTP that keeps to the proposal: it opens a stream for each session that it makes or
    loads.

    Attributes:
        connection: the id of its connection.
        streams: what came on each stream, under its session (None: the connection's own).
        ended: the sessions whose stream has ended.
    """

    def __init__(self, nursery: trio.Nursery, web: httpx.AsyncClient, url: str) -> None:
        super().__init__(nursery)
        self.web = web
        self.url = url
        self.connection: str | None = None
        self.streams: dict[str | None, list[Any]] = {}
        self.ended: list[str | None] = []
        self.opens_streams = True
        self._reading: dict[str | None, trio.CancelScope] = {}

    def headers(self, session: str | None = None) -> dict[str, str]:
        """The headers of a request."""
        made = {} if self.connection is None else {CONNECTION: self.connection}
        return made | ({} if session is None else {SESSION: session})

    async def post(self, message: Any, session: str | None = None, **headers: str) -> httpx.Response:
        """One POST, whatever becomes of it."""
        return await self.web.post(self.url, json=message, headers=self.headers(session) | headers)

    async def send(self, message: Json | list[Any], session: str | None = None) -> None:
        assert isinstance(message, dict)
        method = message.get("method")
        if self.opens_streams and method in ("session/load", "session/resume") and session not in self.streams:
            await self.open(session)
        reply = await self.post(message, session)
        if method == "initialize":
            assert reply.status_code == 200, reply.text
            before, self.connection = self.connection, reply.headers[CONNECTION]
            if self.opens_streams and self.connection != before:
                await self.open(None)
            self.took(reply.json())
        else:
            assert reply.status_code == 202, reply.text
            assert reply.content == b""

    async def new(self) -> str:
        id = await super().new()
        if self.opens_streams:
            await self.open(id)
        return id

    async def open(self, session: str | None, **headers: str) -> None:
        """Opens a stream; returns when it is open."""
        await self.nursery.start(self._read, session, headers)

    async def _read(self, session: str | None, more: dict[str, str], task_status: trio.TaskStatus[None]) -> None:
        kept = self.streams.setdefault(session, [])
        headers = SSE | self.headers(session) | more
        scope = self._reading[session] = trio.CancelScope()
        try:
            with scope:
                await self._read_events(headers, kept, task_status)
        except (httpx.RemoteProtocolError, httpx.ReadError):
            pass
        finally:
            self.ended.append(session)
            self.news.set()

    async def _read_events(self, headers: Json, kept: list[Any], task_status: trio.TaskStatus[None]) -> None:
        async with self.web.stream("GET", self.url, headers=headers) as reply:
            assert reply.status_code == 200, await reply.aread()
            assert reply.headers["content-type"] == "text/event-stream"
            task_status.started()
            held = b""
            async for data in reply.aiter_bytes():  # httpx's own lines end at U+2028 too
                *lines, held = (held + data).replace(b"\r", b"\n").split(b"\n")
                for line in lines:
                    if line.startswith(b"data: "):
                        kept.append(json.loads(line[6:]))
                        self.took(kept[-1])

    async def hang_up(self, session: str | None, mock: Served) -> None:
        """Leaves a stream; returns when the server has seen it."""
        self._reading[session].cancel()
        stream = mock.site._endpoint._connections[self.connection or ""].stream(session)
        while stream is not None and stream.taken:  # there is no event for it
            await trio.lowlevel.checkpoint()

    async def delete(self) -> httpx.Response:
        """Ends the connection."""
        return await self.web.request("DELETE", self.url, headers=self.headers())
