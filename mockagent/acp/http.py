"""ACP over Streamable HTTP: messages come in by POST, one a request, and leave on streams that GET opens.

A connection has a stream of its own, and one for each session that the client asks one for. This module says what each
request means and which stream a message takes; the streams themselves are `acp.stream`'s. It differs from the proposal
where released clients do, and in speaking HTTP/1.1; `docs/transports.md` lists each difference.

Source: ACP proposal "Streamable HTTP & WebSocket Transport", routing, identity and content negotiation.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple

import msgspec
import trio

from mockagent.acp.exchange import Exchange
from mockagent.acp.http_connection import FAREWELL, MOST_STREAMS, Greeting, HttpConnection
from mockagent.acp.stream import Stream
from mockagent.acp.websocket import CONNECTION_HEADER, COOKIE, address
from mockagent.message import Peer
from mockagent.net.channel import Broken, Cut
from mockagent.net.http_message import Headers, Request
from mockagent.net.http_reply import Responder
from mockagent.script.agent import Agent
from mockagent.wire import cors
from mockagent.wire.backstage import Backstage
from mockagent.wire.gate import Gate

SESSION_HEADER = "Acp-Session-Id"

METHODS = ("GET", "POST", "DELETE", "OPTIONS")

NEEDS_SESSION_HEADER = frozenset({
    "session/prompt",
    "session/cancel",
    "session/close",
    "session/set_mode",
    "session/set_config_option",
})  # fmt: skip
"""Methods that are refused without `Acp-Session-Id`. The proposal wants it of every message about a session; a released
SDK leaves it out on the others, and for those the body's `sessionId` is enough."""

MOST_CONNECTIONS = 4096
LONGEST_ID = 1024
"""Characters of an id in a header."""
IDLE = 300.0
"""Seconds without a request and without an open stream after which a client counts as gone."""
FLOODED = 60.0
"""Seconds for which a POST waits for a client to read what it was sent before."""


class Asked(NamedTuple):
    """A request that was let in, with all that answering it needs.

    Attributes:
        agent: whose address it was sent to.
        request: the request.
        data: its body, decoded; None without one.
        session: what `Acp-Session-Id` says.
        connection: the one it belongs to; None before `initialize` has made one.
        exchange: answers it.
    """

    agent: Agent
    request: Request
    data: Any
    session: str | None
    connection: HttpConnection | None
    exchange: Exchange


class Endpoint:
    """Answers every request below `/acp` that is no WebSocket handshake.

    Args:
        backstage: what all connections share.
        gate: knows the origins that are let in.
        idle: seconds after which a client that shows no sign of life counts as gone.
    """

    def __init__(self, backstage: Backstage, gate: Gate, *, idle: float = IDLE) -> None:
        self._backstage = backstage
        self._gate = gate
        self._idle = idle
        self._connections: dict[str, HttpConnection] = {}
        self._stranger = Peer("-", "acp", "http")

    # --- life

    async def run(self) -> None:
        """Sees to clients that have gone without a word; ends by being cancelled."""
        while True:
            await trio.sleep(self._idle / 10)
            now = trio.current_time()
            for connection in list(self._connections.values()):
                since = connection.idle_since
                if since is not None and now - since > self._idle:
                    await self._finish(connection, why="the client has shown no sign of life")

    async def shutdown(self, why: str = "the server shuts down") -> None:
        """Ends every connection."""
        async with trio.open_nursery() as nursery:
            for connection in list(self._connections.values()):
                nursery.start_soon(self._finish, connection, why)

    async def _finish(self, connection: HttpConnection, why: str) -> None:
        if connection.gone:
            return
        self._connections.pop(connection.id, None)
        try:
            connection.close(Cut())
            await connection.closed()
        finally:
            self._backstage.depart(connection.peer, why=why)

    # --- requests

    async def handle(self, agent: Agent, request: Request, responder: Responder) -> None:
        """Answers one request.

        Args:
            agent: whose address it was sent to.
            request: the request.
            responder: answers it.

        Raises:
            Broken: the client is gone, or gets no answer.
        """
        common = self._common(request.headers)
        data, unreadable = _body(request)
        connection, problem = self._connection(agent, request, data)
        problem = _malformed(request, data, unreadable) or problem
        session = request.headers.get(SESSION_HEADER)
        peer = connection.peer if connection is not None else self._peer_for(request, data, problem)
        exchange = Exchange(self._backstage, peer, request, responder, session=session, data=data, common=common)
        if connection is not None:
            connection.busy += 1
        try:
            if not await exchange.admit():
                return
            if request.method == "OPTIONS":
                await exchange.reply(204, None, self._options(request.headers))
            elif request.method not in _METHODS:
                allow = {"Allow": ", ".join(METHODS)}
                await self._refuse(exchange, 405, "method_not_allowed", f"{request.method} is not possible here", allow)
            elif problem is not None:
                if unreadable is not None:
                    self._backstage.taps.malformed(peer, request.body, unreadable)
                await self._refuse(exchange, *problem)
            else:
                await _METHODS[request.method](self, Asked(agent, request, data, session, connection, exchange))
        finally:
            if connection is not None:
                connection.busy -= 1
                connection.seen = trio.current_time()

    def _common(self, headers: Headers) -> dict[str, str]:
        told = cors.common(headers, self._gate.allows, exposed=[CONNECTION_HEADER, "WWW-Authenticate", "Retry-After"])
        if "Access-Control-Allow-Origin" in told:
            told["Access-Control-Allow-Credentials"] = "true"
        return told

    def _options(self, headers: Headers) -> dict[str, str]:
        usual = ("Accept", "Authorization", "Content-Type", CONNECTION_HEADER, SESSION_HEADER)
        return cors.preflight(headers, METHODS, usual=usual) or {"Allow": ", ".join(METHODS)}

    def _peer_for(self, request: Request, data: Any, problem: Problem | None) -> Peer:
        """A name for whoever asks without a connection: one of its own for `initialize`."""
        if problem is None and request.method == "POST" and _is_initialize(data):
            return self._backstage.peer("acp", "http")
        return self._stranger

    def _connection(self, agent: Agent, request: Request, data: Any) -> tuple[HttpConnection | None, Problem | None]:
        """The connection that a request belongs to, or what is wrong with the headers that should say so."""
        id = request.headers.get(CONNECTION_HEADER)
        session = request.headers.get(SESSION_HEADER)
        if max(len(id or ""), len(session or "")) > LONGEST_ID:
            return None, (400, "bad_header", f"an id may have {LONGEST_ID} characters")
        if id is None:
            if request.method == "OPTIONS" or (request.method == "POST" and _is_initialize(data)):
                return None, None
            return None, (400, "missing_connection", f"{CONNECTION_HEADER} is missing; initialize gives it out")
        connection = self._connections.get(id)
        if connection is None or connection.agent is not agent:
            return None, (404, "unknown_connection", f"there is no connection {id!r}; initialize makes one")
        self._look_for_cookie(connection, request.headers)
        return connection, None

    def _look_for_cookie(self, connection: HttpConnection, headers: Headers) -> None:
        """Clients MUST send cookies back (proposal, section 5). That is noted, and nothing depends on it."""
        wanted = f"{COOKIE}={connection.id}"
        sent = [part.strip() for value in headers.get_all("cookie") for part in value.split(";")]
        if wanted not in sent and not connection.cookie_missed:
            connection.cookie_missed = True
            self._backstage.note("cookie_missing", connection.peer, cookie=COOKIE)

    async def _refuse(
        self, exchange: Exchange, status: int, code: str, why: str, headers: Mapping[str, str] | None = None
    ) -> None:
        self._backstage.note("refused", exchange.peer, exchange.message.session, status=status, code=code, why=why)
        await exchange.reply(status, {"error": {"code": code, "message": why}}, headers)

    # --- POST

    async def _post(self, asked: Asked) -> None:
        connection = asked.connection
        if connection is None:
            await self._initialize(asked)
        elif asked.data.get("method") == "initialize" and connection.connection.version is None:
            await self._greet(asked, connection)
        else:
            await self._message(asked, connection)

    async def _initialize(self, asked: Asked) -> None:
        exchange = asked.exchange
        if len(self._connections) >= MOST_CONNECTIONS:
            await self._refuse(exchange, 503, "too_many_connections", "too many connections", {"Retry-After": "1"})
            return
        connection = HttpConnection(self._backstage, asked.agent, exchange.peer, self._backstage.connection_id())
        self._connections[connection.id] = connection
        connection.busy += 1
        try:
            await self._greet(asked, connection)
        except BaseException:
            with trio.CancelScope(shield=True):
                await self._finish(connection, "the client left before initialize was answered")
            raise
        finally:
            connection.busy -= 1
            connection.seen = trio.current_time()

    async def _greet(self, asked: Asked, connection: HttpConnection) -> None:
        """Answers `initialize` in the reply to its POST."""
        exchange = asked.exchange
        headers = {
            CONNECTION_HEADER: connection.id,
            "Set-Cookie": f"{COOKIE}={connection.id}; Path=/acp; HttpOnly; SameSite=Lax",
        }
        greeting = connection.greeting = Greeting(self._backstage, exchange.peer, exchange, headers)
        if self._backstage.connections.get(connection.peer.id) is None:
            self._backstage.arrive(connection.out, agent=connection.agent.scenario.name, address=address(asked.request))
        connection.connection.receive(asked.request.body)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(greeting.line.run)
            nursery.start_soon(_either, greeting.done, exchange, nursery.cancel_scope)
        connection.greeting = None

    async def _message(self, asked: Asked, connection: HttpConnection) -> None:
        exchange = asked.exchange
        problem = self._misaddressed(connection, asked.session, asked.data)
        if problem is not None:
            await self._refuse(exchange, *problem)
            return
        await self._backstage.stall(connection.peer).wait()
        with trio.move_on_after(FLOODED) as waiting:
            for line in connection.lines:
                await line.with_room()
        if waiting.cancelled_caught:
            await self._refuse(exchange, 503, "unread", "there is too much that this client has not read")
            return
        connection.connection.receive(asked.request.body)
        await exchange.reply(202)

    def _misaddressed(self, connection: HttpConnection, header: str | None, data: dict[str, Any]) -> Problem | None:
        """What is wrong with `Acp-Session-Id`."""
        method = data.get("method")
        if method == "initialize":
            return 400, "initialized_already", "initialize was called on this connection before"
        session = self._session_of(connection, data)
        if header is None:
            if method in NEEDS_SESSION_HEADER:
                return 400, "missing_session", f"{SESSION_HEADER} is missing: {method} is about a session"
            if session is not None:
                self._backstage.note("session_header_missing", connection.peer, session, method=method or "answer")
        elif session is not None and header != session:
            return 400, "wrong_session", f"{SESSION_HEADER} is {header!r}, and the message is about {session!r}"
        return None

    def _session_of(self, connection: HttpConnection, data: dict[str, Any]) -> str | None:
        if "method" in data:
            params = data.get("params")
            session = params.get("sessionId") if isinstance(params, dict) else None
        else:
            id = data.get("id")
            asked = connection.connection.pending.get(id) if isinstance(id, str | int | float) else None
            session = asked.context if asked is not None else None
        return session if isinstance(session, str) else None

    # --- GET

    async def _get(self, asked: Asked) -> None:
        connection, exchange = asked.connection, asked.exchange
        assert connection is not None
        if not _takes_events(asked.request.headers):
            await self._refuse(exchange, 406, "not_acceptable", "Accept has to include text/event-stream")
            return
        session = asked.session
        first = session is not None and session not in connection.streams
        stream = connection.stream(session)
        if stream is None:
            await self._refuse(exchange, 503, "too_many_streams", f"there are {MOST_STREAMS} streams already")
        elif not await stream.free():
            await self._refuse(exchange, 409, "stream_taken", "this stream is open already")
        else:
            self._backstage.note("stream_opened", connection.peer, session)
            try:
                if first:  # what was sent on the connection's stream until now comes first
                    await _flushed(connection.main)
                await stream.serve(exchange, connection.out)
            finally:
                connection.left(session)

    # --- DELETE

    async def _delete(self, asked: Asked) -> None:
        connection, exchange = asked.connection, asked.exchange
        assert connection is not None
        self._connections.pop(connection.id, None)
        try:
            await exchange.reply(202)
        finally:
            with trio.CancelScope(shield=True):
                await self._finish(connection, "the client has ended it")


Problem = tuple[int, str, str]
"""Status, code and sentence of a refusal."""

_METHODS: dict[str, Callable[[Endpoint, Asked], Awaitable[None]]] = {
    "GET": Endpoint._get,
    "POST": Endpoint._post,
    "DELETE": Endpoint._delete,
}


async def _either(done: trio.Event, exchange: Exchange, scope: trio.CancelScope) -> None:
    """Ends the writing once it is done.

    Raises:
        Broken: the client has left before.
    """
    async with trio.open_nursery() as nursery:

        async def until(event: trio.Event) -> None:
            await event.wait()
            nursery.cancel_scope.cancel()

        nursery.start_soon(until, done)
        nursery.start_soon(until, exchange.disconnected)
    if not done.is_set():
        raise Broken("the client left without an answer")
    scope.cancel()


async def _flushed(stream: Stream) -> None:
    if stream.taken:
        with trio.move_on_after(FAREWELL):
            await stream.line.drained()


def _malformed(request: Request, data: Any, unreadable: str | None) -> Problem | None:
    """What is wrong with the form of a POST."""
    if request.method != "POST":
        return None
    if not _is_json(request):
        return 415, "unsupported_media_type", "Content-Type has to be application/json"
    if unreadable is not None:
        return 400, "parse_error", unreadable
    if isinstance(data, list):
        return 501, "batch", "batches are not taken over HTTP: send one message a request"
    if not isinstance(data, dict):
        return 400, "invalid_request", "a message is a JSON object"
    return None


_decode = msgspec.json.Decoder().decode


def _body(request: Request) -> tuple[Any, str | None]:
    """The body as JSON, and why it is none."""
    if request.method != "POST":
        return None, None
    try:
        return _decode(request.body), None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return None, f"the body is no JSON: {error}"


def _is_json(request: Request) -> bool:
    return (request.headers.get("content-type") or "").partition(";")[0].strip().lower() == "application/json"


def _is_initialize(data: Any) -> bool:
    return isinstance(data, dict) and data.get("method") == "initialize" and "id" in data


def _takes_events(headers: Headers) -> bool:
    return any(token.partition(";")[0].strip() == "text/event-stream" for token in headers.tokens("accept"))
