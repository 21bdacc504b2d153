"""A whole server in the test's own event loop, and a client that speaks AAP to it through real sockets."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import httpx
import pytest
import trio

from mockagent.host import Host, Options
from mockagent.message import Burst, Direction, Fate, Message, Peer
from mockagent.net.http import open_listeners, serve_http
from mockagent.net.sse import SseEvent, SseParser
from mockagent.scenario.load import load_text
from mockagent.script.driver import drive
from mockagent.aap.service import Service


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
    async def streaming(self, session: str, *messages: Any, **body: Any) -> AsyncIterator[httpx.Response]:
        """A turn whose answer is still coming."""
        made = [{"role": "user", "content": message} for message in messages]
        body = {"stream": "delta", "messages": made} | body
        async with self.http.stream("POST", f"/sessions/{session}/turns", json=body) as reply:
            yield reply


def parsed(data: bytes) -> list[tuple[str, Any]]:
    """The events of a whole stream, with their data decoded."""
    events = []
    for event in SseParser().feed(data):
        assert isinstance(event, SseEvent)
        events.append((event.name, httpx.Response(200, content=event.data).json()))
    return events


Serve = Callable[..., Awaitable[Server]]


@pytest.fixture
async def serve(nursery: trio.Nursery) -> AsyncIterator[Serve]:
    """Starts a server for scenarios (texts in YAML; a first line `name: ...` is added), closed at the end."""
    clients: list[httpx.AsyncClient] = []
    failures: list[str] = []

    async def start(*scenarios: str, base: str = "/aap", headers: dict[str, str] | None = None) -> Server:
        seen = Seen()
        models = [load_text(f"name: test\nclock: {{speed: 0}}\n{text}") for text in scenarios or ("",)]
        host = Host(models, Options(), taps=[seen])
        service = Service(host.backstage, host.agents, base)
        nursery.start_soon(drive, host.stage)
        listeners = await open_listeners("127.0.0.1", 0)
        server = await nursery.start(partial(serve_http, listeners, service.handle, log=failures.append))
        http = httpx.AsyncClient(base_url=f"http://127.0.0.1:{server.port}{base}", headers=headers, timeout=20)
        clients.append(http)
        return Server(host, server.port, http, seen)

    yield start
    for client in clients:
        await client.aclose()
    nursery.cancel_scope.cancel()
    assert not failures
