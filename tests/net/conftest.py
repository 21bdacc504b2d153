"""An HTTP server on a free port for each test that asks for one, with clients that look at single bytes."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import pytest
import trio

from mockagent.net.http import Handler, HttpServer, Limits, open_listeners, serve_http

PATIENCE = 20  # seconds after which a test is considered stuck


class Raw:
    """A client that sends bytes as they are."""

    def __init__(self, stream: trio.SocketStream) -> None:
        self.stream = stream
        self.held = b""

    async def send(self, data: bytes) -> None:
        await self.stream.send_all(data)

    async def until(self, mark: bytes) -> bytes:
        """What comes, up to the mark and with it."""
        while mark not in self.held:
            data = await self.stream.receive_some()
            assert data, f"the server has closed; before that: {self.held!r}"
            self.held += data
        cut = self.held.index(mark) + len(mark)
        found, self.held = self.held[:cut], self.held[cut:]
        return found

    async def rest(self) -> bytes:
        """Everything up to the orderly end."""
        while data := await self.stream.receive_some():
            self.held += data
        return self.held

    async def rest_and_reset(self) -> bytes:
        """Everything up to a RST, which has to come."""
        with pytest.raises(trio.BrokenResourceError) as raised:
            await self.rest()
        assert isinstance(raised.value.__cause__, ConnectionResetError)
        return self.held

    async def reply(self) -> tuple[int, dict[str, str], bytes]:
        """One reply with a Content-Length."""
        head = (await self.until(b"\r\n\r\n")).decode()
        status, *lines = head.strip().split("\r\n")
        headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines)}
        size = int(headers.get("content-length", "0"))
        while len(self.held) < size:
            data = await self.stream.receive_some()
            assert data, "the body is too short"
            self.held += data
        body, self.held = self.held[:size], self.held[size:]
        return int(status.split()[1]), headers, body


class Served:
    """A server under test."""

    def __init__(self, server: HttpServer, log: list[str]) -> None:
        self.server = server
        self.log = log
        self.port = server.port
        self.url = f"http://127.0.0.1:{server.port}"

    async def left_alone(self) -> None:
        """Returns when every connection has ended, so that the log is complete."""
        while self.server.connections:
            await trio.lowlevel.checkpoint()

    @asynccontextmanager
    async def raw(self, *, receive_buffer: int | None = None) -> AsyncIterator[Raw]:
        sock = trio.socket.socket()
        if receive_buffer is not None:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        await sock.connect(("127.0.0.1", self.port))
        async with trio.SocketStream(sock) as stream:
            yield Raw(stream)


Serve = Callable[..., Awaitable[Served]]


@pytest.fixture
async def serve(nursery: trio.Nursery) -> Serve:
    """Starts a server for a handler; it ends with the test, and so does a test that hangs."""
    nursery.cancel_scope.deadline = trio.current_time() + PATIENCE

    async def start(handler: Handler, limits: Limits | None = None, **more: Any) -> Served:
        listeners = await open_listeners("127.0.0.1", 0)
        log: list[str] = []
        run = partial(serve_http, listeners, handler, limits=limits or Limits(), log=log.append, **more)
        return Served(await nursery.start(run), log)

    return start
