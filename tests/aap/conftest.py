"""A whole server in the test's own event loop, and a client that speaks AAP to it through real sockets."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import h11
import httpx
import pytest
import trio

from mockagent.aap.service import Service
from mockagent.host import Host, Options
from mockagent.message import Burst, Direction, Fate, Message, Peer
from mockagent.net.http import open_listeners, serve_http
from mockagent.net.sse import SseEvent, SseParser
from mockagent.scenario.load import load_text
from mockagent.scenario.model import Scenario
from mockagent.script.driver import drive


class Seen:
    """A tap that keeps everything."""

    def __init__(self) -> None:
        self.messages: list[tuple[str, Direction, Fate]] = []
        self.data: list[Message] = []
        self.notes: list[tuple[str, dict[str, Any]]] = []

    def saw(self, message: Message, direction: Direction, fate: Fate) -> None:
        self.messages.append((message.kind, direction, fate))
        self.data.append(message)

    def saw_burst(self, burst: Burst) -> None:
        for message in burst.messages():
            self.saw(message, "out", Fate.INTACT)

    def malformed(self, peer: Peer, data: bytes, why: str) -> None:
        self.notes.append(("malformed", {"why": why}))

    def note(self, event: str, peer: Peer | None, session: str | None, detail: dict[str, Any]) -> None:
        self.notes.append((event, detail))

    def lost(self, peer: Peer, count: int) -> None:
        self.notes.append(("lost", {"count": count}))

    def flush(self) -> None:
        pass

    def close(self) -> None:
        pass

    def kinds(self, direction: Direction) -> list[str]:
        return [kind for kind, way, _ in self.messages if way == direction]

    def noted(self, event: str) -> list[dict[str, Any]]:
        return [detail for name, detail in self.notes if name == event]


class Server:
    """A running server and a client of it."""

    def __init__(self, host: Host, port: int, http: httpx.AsyncClient, seen: Seen) -> None:
        self.host = host
        self.port = port
        self.http = http
        self.seen = seen

    async def create(self, **body: Any) -> str:
        """Makes a session and returns its id."""
        reply = await self.http.post("/sessions", json={"agent": {"name": "mock-agent"}} | body)
        assert reply.status_code == 201, reply.text
        id: str = reply.json()["sessionId"]
        return id

    async def turn(self, session: str, *messages: Any, **body: Any) -> httpx.Response:
        """Sends a turn; strings are user messages."""
        made = [{"role": "user", "content": message} if isinstance(message, str) else message for message in messages]
        return await self.http.post(f"/sessions/{session}/turns", json={"messages": made} | body)

    async def events(self, session: str, *messages: Any, **body: Any) -> list[tuple[str, Any]]:
        """Sends a turn with `stream: delta` (unless the body says otherwise), and returns its events."""
        reply = await self.turn(session, *messages, **({"stream": "delta"} | body))
        assert reply.status_code == 200, reply.text
        assert reply.headers["content-type"].startswith("text/event-stream")
        return parsed(reply.content)

    async def history(self, session: str, kind: str = "full") -> list[dict[str, Any]]:
        """The history of a session."""
        reply = await self.http.get(f"/sessions/{session}/history", params={"type": kind})
        assert reply.status_code == 200, reply.text
        messages: list[dict[str, Any]] = reply.json()["history"][kind]
        return messages

    @asynccontextmanager
    async def streaming(self, session: str, *messages: Any, **body: Any) -> AsyncIterator[Stream]:
        """A turn whose answer is still coming; the connection ends with the block."""
        made = [{"role": "user", "content": message} for message in messages]
        content = json.dumps({"stream": "delta", "messages": made} | body).encode()
        socket = await trio.open_tcp_stream("127.0.0.1", self.port)
        async with socket:
            stream = Stream(socket)
            head = [("Host", "localhost"), ("Content-Type", "application/json"), ("Content-Length", str(len(content)))]
            await stream.send("POST", f"/aap/sessions/{session}/turns", head, content)
            yield stream


class Stream:
    """A client that reads an answer as it comes."""

    def __init__(self, socket: trio.SocketStream) -> None:
        self.socket = socket
        self.head: h11.Response | None = None
        self._h11 = h11.Connection(h11.CLIENT)
        self._parser = SseParser()
        self._events: list[SseEvent] = []

    async def send(self, method: str, target: str, head: list[tuple[str, str]], body: bytes) -> None:
        data = self._h11.send(h11.Request(method=method, target=target, headers=head)) or b""
        data += (self._h11.send(h11.Data(body)) or b"") + (self._h11.send(h11.EndOfMessage()) or b"")
        await self.socket.send_all(data)

    async def next(self) -> SseEvent | None:
        """The next event; None: the answer has ended in order."""
        while not self._events:
            event = self._h11.next_event()
            if event is h11.NEED_DATA:
                self._h11.receive_data(await self.socket.receive_some())
            elif isinstance(event, h11.Response):
                self.head = event
            elif isinstance(event, h11.Data):
                self._events += [made for made in self._parser.feed(bytes(event.data)) if isinstance(made, SseEvent)]
            else:
                return None
        return self._events.pop(0)

    async def until(self, name: str) -> SseEvent:
        """Reads up to an event of that name."""
        while (event := await self.next()) is not None:
            if event.name == name:
                return event
        raise AssertionError(f"the answer ended without {name}")


def parsed(data: bytes) -> list[tuple[str, Any]]:
    """The events of a whole stream, with their data decoded."""
    events = []
    for event in SseParser().feed(data):
        assert isinstance(event, SseEvent)
        events.append((event.name, json.loads(event.data)))
    return events


Serve = Callable[..., Awaitable[Server]]


@pytest.fixture
async def serve(nursery: trio.Nursery) -> AsyncIterator[Serve]:
    """Starts a server for scenarios (YAML to which a name is added, or what was made of it), closed at the end."""
    clients: list[httpx.AsyncClient] = []
    failures: list[str] = []

    async def start(
        *scenarios: str | Scenario, base: str = "/aap", taps: Sequence[Any] = (), journal: str | None = None
    ) -> Server:
        seen = Seen()
        models = [
            load_text(f"name: test\nclock: {{speed: 0}}\n{text}") if isinstance(text, str) else text
            for text in scenarios or ("",)
        ]
        host = Host(models, Options(journal=journal, speed=0), taps=[seen, *taps])
        service = Service(host.backstage, host.agents, base)
        nursery.start_soon(drive, host.stage)
        listeners = await open_listeners("127.0.0.1", 0)
        server = await nursery.start(partial(serve_http, listeners, service.handle, log=failures.append))
        http = httpx.AsyncClient(base_url=f"http://127.0.0.1:{server.port}{base}", timeout=20, verify=False)
        clients.append(http)
        return Server(host, server.port, http, seen)

    yield start
    for client in clients:
        await client.aclose()
    nursery.cancel_scope.cancel()
    assert not failures
