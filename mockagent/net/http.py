"""An HTTP/1.1 server that owns its bytes: reads requests within limits, one at a time, and lets a handler answer.

h11 does the parsing (RFC 9112). Everything a client can do wrong ends in a clear answer or a closed connection, never
in a dead server. Knows no paths and no protocol on top of HTTP.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress

import h11
import msgspec
import trio

from mockagent.net import sockets
from mockagent.net.channel import Broken, Cut
from mockagent.net.http_message import HeaderList, Headers, Limits, Request
from mockagent.net.http_reply import BodyChannel, Common, Hook, Link, Responder, Successor, reason_phrase

__all__ = [
    "BodyChannel",
    "HeaderList",
    "Headers",
    "Hook",
    "HttpServer",
    "Limits",
    "Request",
    "Responder",
    "open_listeners",
    "serve_http",
]

Handler = Callable[[Request, Responder], Awaitable[None]]
Log = Callable[[str], None]

_CODES = {
    400: "malformed",
    408: "timeout",
    413: "body_too_large",
    431: "headers_too_large",
    500: "internal_error",
    501: "not_implemented",
    503: "too_many_connections",
    505: "version_not_supported",
}


class Refused(Exception):
    """A request that gets an answer from here, behind which the connection ends."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


def error_body(status: int, message: str) -> bytes:
    """The JSON body of the answers that this module makes itself."""
    return msgspec.json.encode({"error": {"code": _CODES.get(status, "error"), "message": message}})


async def open_listeners(host: str, port: int, backlog: int = 1024) -> Sequence[trio.SocketListener]:
    """Listens on every address of a host, on one port.

    Args:
        host: a name or address.
        port: 0 picks a free one; it is the same for all addresses.
        backlog: connections that may wait to be accepted.

    Raises:
        OSError: when the port is taken, or the host unknown.
    """
    listeners = await trio.open_tcp_listeners(port, host=host, backlog=backlog)
    if port == 0 and len(listeners) > 1:
        # Each address got a port of its own; all have to take that of the first.
        port = int(listeners[0].socket.getsockname()[1])
        for listener in listeners:
            await listener.aclose()
        listeners = await trio.open_tcp_listeners(port, host=host, backlog=backlog)
    return listeners


async def serve_http(
    listeners: Sequence[trio.SocketListener],
    handler: Handler,
    *,
    limits: Limits = Limits(),  # noqa: B008  # frozen
    log: Log | None = None,
    common: Common | None = None,
    task_status: trio.TaskStatus[HttpServer] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Serves until it is cancelled, or until its `HttpServer` is told to stop.

    Args:
        listeners: where connections come from; they are closed in the end.
        handler: answers one request. It runs in a task of the connection and may take as long as it wants. What it
            raises is logged, and answered with 500 if nothing was before.
        limits: what one client may cost.
        log: gets one line for whatever is worth knowing.
        common: headers for every reply that has none of that name, asked for each reply.
        task_status: gets the `HttpServer`.
    """
    server = HttpServer(listeners, handler, limits, log or (lambda line: None), common)
    await server.run(task_status)


class HttpServer:
    """A running server, for whoever started it."""

    def __init__(
        self,
        listeners: Sequence[trio.SocketListener],
        handler: Handler,
        limits: Limits,
        log: Log,
        common: Common | None,
    ) -> None:
        self.listeners = list(listeners)
        self.port = int(self.listeners[0].socket.getsockname()[1])
        """The port of the first listener."""
        self.handler = handler
        self.limits = limits
        self.log = log
        self.common = common
        self.stopping = False
        self._links: set[Link] = set()
        self._waiting: set[trio.CancelScope] = set()
        self._accepting = trio.CancelScope()
        self._everything = trio.CancelScope()

    @property
    def connections(self) -> int:
        """How many clients are connected."""
        return len(self._links)

    async def run(self, task_status: trio.TaskStatus[HttpServer]) -> None:
        with self._everything:
            async with trio.open_nursery() as connections:
                with self._accepting:
                    task_status.started(self)
                    await trio.serve_listeners(self._accept, self.listeners, handler_nursery=connections)

    def shutdown(self, grace: float = 1.0) -> None:
        """Accepts nothing more, closes connections without a request, and gives the others some seconds to finish."""
        self.stopping = True
        self._accepting.cancel()
        for scope in self._waiting:
            scope.cancel()
        self._everything.deadline = min(self._everything.deadline, trio.current_time() + grace)

    def abort(self) -> None:
        """Resets every connection at once and stops, like a process that was killed."""
        self.stopping = True
        for link in self._links:
            sockets.abort(link.stream)
        self._everything.cancel()

    def waiting(self, seconds: float) -> trio.CancelScope:
        """A scope for waiting on a connection that owes nobody anything; a shutdown cancels it."""
        scope = trio.CancelScope(deadline=trio.current_time() + seconds)
        self._waiting.add(scope)
        if self.stopping:
            scope.cancel()
        return scope

    def waited(self, scope: trio.CancelScope) -> None:
        self._waiting.discard(scope)

    async def _accept(self, stream: trio.SocketStream) -> None:
        link: Link | None = None
        try:
            async with trio.open_nursery() as nursery:
                link = Link(stream, nursery, self.limits.header_bytes)
                full = len(self._links) >= self.limits.connections
                self._links.add(link)
                try:
                    await Connection(self, link).run(full)
                    if link.successor is not None:
                        await self._hand_over(link, link.successor)
                finally:
                    self._links.discard(link)
                    link.forget()
        except Exception as error:
            self.log(f"connection failed: {error!r}")
        finally:
            stream.socket.close()
            if link is not None:
                link.gone.set()

    async def _hand_over(self, link: Link, successor: Successor) -> None:
        behind = link.h11.trailing_data[0]
        del link.h11  # there may be thousands of such connections, and they may last for days
        try:
            await successor(link.stream, behind)
        except Exception as error:
            if not _only_broken(error):
                self.log(f"connection failed: {error!r}")


class Connection:
    """The exchanges of one connection, one behind the other."""

    def __init__(self, server: HttpServer, link: Link) -> None:
        self._server = server
        self._limits = server.limits
        self._link = link
        self._conn = link.h11
        self._peer = sockets.address(link.stream.socket)

    async def run(self, full: bool) -> None:
        try:
            if full:
                raise Refused(503, "too many connections")
            while await self._exchange():
                pass
        except Refused as refused:
            await self._refuse(refused.status, str(refused))
        except Broken:
            pass
        await self._end()

    async def _end(self) -> None:
        link = self._link
        if link.successor is not None:
            return
        if link.ended is None:
            await link.end(Cut())
        elif link.ended.how == "half":
            # The client may still talk, so it is listened to until it ends too.
            link.watch()
            scope = link.waiting = self._server.waiting(self._limits.idle_seconds)
            with scope:
                await link.disconnected.wait()
            self._server.waited(scope)
            await link.stop_watching()

    async def _exchange(self) -> bool:
        """One request and its answer. Returns whether another may follow."""
        head = await self._read_head()
        if head is None:
            return False
        body = await self._read_body(head)
        request = Request(
            head.method.decode("ascii"),
            head.target.decode("latin-1"),
            head.headers.raw_items(),
            body,
            peer=self._peer,
            http_version=head.http_version.decode("ascii"),
        )
        self._link.over = self._link.over or self._server.stopping
        await self._answer(request)
        await self._link.stop_watching()
        if self._link.over or self._server.stopping:
            return False
        if self._conn.our_state is not h11.DONE or self._conn.their_state is not h11.DONE:
            return False
        self._conn.start_next_cycle()
        return True

    async def _answer(self, request: Request) -> None:
        responder = Responder(self._link, request, self._server.common)
        try:
            await self._server.handler(request, responder)
            if not responder.begun:
                raise RuntimeError("the handler has not answered")
            await responder.finish()
        except Exception as error:
            if _only_broken(error):
                raise Broken from error
            self._server.log(f"{request.method} {request.path}: {error!r}")
            if responder.begun or self._conn.our_state is h11.ERROR:
                self._link.over = True  # part of an answer is out; a missing end is all that can be said
            else:
                body = error_body(500, "the handler failed")
                await responder.send(500, [("Content-Type", "application/json")], body)

    async def _read_head(self) -> h11.Request | None:
        """The next request without its body, or None when the client has left or is silent for too long."""
        event = self._parse()
        if event is h11.NEED_DATA and not self._conn.trailing_data[0]:
            event = await self._wait_for_first_byte()
        if event is h11.NEED_DATA:
            with trio.move_on_after(self._limits.header_seconds):
                event = await self._next_event()
            if event is h11.NEED_DATA:
                raise Refused(408, f"headers took longer than {self._limits.header_seconds:g} seconds")
        if not isinstance(event, h11.Request):
            return None
        self._check(event)
        return event

    async def _wait_for_first_byte(self) -> object:
        scope = self._link.waiting = self._server.waiting(self._limits.idle_seconds)
        try:
            with scope:
                self._conn.receive_data(await self._link.receive())
                return self._parse()
            return None
        finally:
            self._link.waiting = None
            self._server.waited(scope)

    def _check(self, head: h11.Request) -> None:
        """What h11 lets through and we do not."""
        size = len(head.method) + len(head.target) + sum(len(name) + len(value) + 4 for name, value in head.headers)
        if size > self._limits.header_bytes:
            raise Refused(431, f"more than {self._limits.header_bytes} bytes of headers")
        if not head.http_version.startswith(b"1."):
            raise Refused(505, "this server speaks HTTP/1.1")
        if head.method == b"CONNECT":
            raise Refused(501, "this server is no proxy")
        length = dict(head.headers).get(b"content-length", b"0")
        if int(length) > self._limits.body_bytes:
            raise Refused(413, f"a body may have {self._limits.body_bytes} bytes")

    async def _read_body(self, head: h11.Request) -> bytes:
        parts: list[bytes] = []
        size = 0
        while True:
            event = self._parse()
            if event is h11.NEED_DATA:
                if self._conn.they_are_waiting_for_100_continue:
                    await self._link.send(self._conn.send(h11.InformationalResponse(status_code=100, headers=[])))
                with trio.move_on_after(self._limits.body_seconds) as scope:
                    event = await self._next_event()
                if scope.cancelled_caught:
                    raise Refused(408, f"no more of the body for {self._limits.body_seconds:g} seconds")
            if isinstance(event, h11.EndOfMessage):
                return b"".join(parts)
            if not isinstance(event, h11.Data):
                raise Broken("the client left in the middle of a request")
            size += len(event.data)
            if size > self._limits.body_bytes:
                raise Refused(413, f"a body may have {self._limits.body_bytes} bytes")
            parts.append(bytes(event.data))

    async def _next_event(self) -> object:
        event = self._parse()
        while event is h11.NEED_DATA:
            self._conn.receive_data(await self._link.receive())
            event = self._parse()
        return event

    def _parse(self) -> object:
        try:
            return self._conn.next_event()
        except h11.RemoteProtocolError as error:
            raise Refused(error.error_status_hint, str(error)) from None

    async def _refuse(self, status: int, message: str) -> None:
        """Answers without h11, whose state may not allow it any more."""
        self._server.log(f"refused with {status}: {message}")
        body = error_body(status, message)
        head = b"HTTP/1.1 %d %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\nConnection: close\r\n\r\n"
        with suppress(Broken):
            await self._link.send(head % (status, reason_phrase(status), len(body)) + body)


def _only_broken(error: Exception) -> bool:
    """Whether nothing went wrong but that the client is gone."""
    if isinstance(error, BaseExceptionGroup):
        return error.split(Broken)[1] is None
    return isinstance(error, Broken)
