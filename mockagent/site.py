"""The server: one port, and who answers below which path.

`/acp` and `/acp/NAME` for each agent, the AAP base, `/_mock` for control. Checks who may come in before anybody looks
at a request, and sees to an orderly end. What the paths mean is the protocols' business.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

import msgspec
import trio

from mockagent.acp.http import Endpoint
from mockagent.message import NETWORK
from mockagent.net.channel import Cut
from mockagent.net.http import open_listeners, serve_http
from mockagent.net.http_message import Limits, Request
from mockagent.net.http_reply import Link, Responder
from mockagent.script.agent import Agent
from mockagent.watch.arrivals import Arrivals
from mockagent.watch.stderr import to_stderr
from mockagent.wire.backstage import Backstage
from mockagent.wire.gate import Gate, bearer, opens

if TYPE_CHECKING:
    from mockagent.net.http import HttpServer

Handler = Callable[[Request, Responder], Awaitable[None]]

GOING_AWAY = 1001
"""Close code of RFC 6455, 7.4.1, for a server that shuts down."""

GRACE = 1.0
"""Seconds that exchanges under way get at the end."""

LIMITS = Limits(connections=4096)
"""What a client may cost; a client over HTTP needs a TCP connection for each stream."""


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """Where and how to serve.

    Attributes:
        host: address to listen on.
        port: 0 picks a free one.
        aap_base: path below which AAP is answered.
        allow_origins: further origins whose pages may connect.
        log: a line on stderr for each connection.
    """

    host: str = "127.0.0.1"
    port: int = 8765
    aap_base: str = "/aap"
    allow_origins: tuple[str, ...] = ()
    log: bool = False


class Site:
    """Everything below one address.

    Args:
        backstage: shared services, and the agents that are served.
        settings: address, paths and origins.
        mounts: path prefixes beside those of the protocols, and who answers below them.
    """

    def __init__(self, backstage: Backstage, settings: Settings, mounts: Sequence[tuple[str, Handler]] = ()) -> None:
        self._backstage = backstage
        self._settings = settings
        self._gate = Gate(settings.host, settings.allow_origins)
        self._server: HttpServer | None = None
        self._endpoint = Endpoint(backstage, self._gate)
        self._ending = trio.Event()
        self._mounts = list(mounts)
        self._guests: set[Link] = set()
        self._inside: set[Link] = set()
        self._left = trio.Event()
        if settings.log:
            backstage.taps.add(Arrivals(to_stderr))
        self._prefixes = self._mount()

    def _mount(self) -> list[tuple[str, Handler]]:
        """Path prefixes and who answers below them, the longest first."""
        from mockagent.aap.service import Service

        aap = Service(self._backstage, self._backstage.agents, self._settings.aap_base, gate=self._gate)
        self._shutdown = aap.shutdown
        mounted: list[tuple[str, Handler]] = [
            ("/acp", partial(self._let_in, self._acp)),
            (self._settings.aap_base.rstrip("/"), partial(self._let_in, aap.handle)),
            *self._mounts,
        ]
        return sorted(mounted, key=lambda entry: len(entry[0]), reverse=True)

    async def run(self, task_status: trio.TaskStatus[int] = trio.TASK_STATUS_IGNORED) -> None:
        """Listens, and serves until `stop`.

        Args:
            task_status: gets the port once connections are accepted.

        Raises:
            OSError: the address cannot be listened on.
        """
        listeners = await open_listeners(self._settings.host, self._settings.port)
        self._backstage.partings.append(self._part)
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._endpoint.run)
                nursery.start_soon(self._farewell)
                async with trio.open_nursery() as serving:
                    self._server = await serving.start(self._serve, listeners)
                    assert self._server is not None
                    task_status.started(self._server.port)
                nursery.cancel_scope.cancel()
        finally:
            self._backstage.partings.remove(self._part)

    async def _farewell(self) -> None:
        await self._ending.wait()
        await self._endpoint.shutdown()

    async def _serve(
        self, listeners: list[trio.SocketListener], task_status: trio.TaskStatus[HttpServer] = trio.TASK_STATUS_IGNORED
    ) -> None:
        complain = self._backstage.complain
        await serve_http(listeners, self._answer, limits=LIMITS, log=complain, task_status=task_status)

    def stop(self) -> None:
        """Accepts nothing more, says goodbye to those who are connected, and lets `run` return."""
        self._shutdown()
        for out in list(self._backstage.connections.values()):
            out.finish(Cut("close", GOING_AWAY, "the server shuts down"))
        self._ending.set()
        if self._server is not None:
            self._server.shutdown(GRACE)

    def abort(self) -> None:
        """Resets every connection at once and lets `run` return, like a process that was killed."""
        if self._server is not None:
            self._server.abort()

    # --- who is there

    async def _let_in(self, handler: Handler, request: Request, responder: Responder) -> None:
        """Lets a client of the agents in; while everything is about to begin anew, it waits for that at the door."""
        await self._backstage.opened()
        link = responder.connection
        if link not in self._guests:
            self._guests.add(link)
            link.at_end.append(partial(self._gone, link))
        self._inside.add(link)
        try:
            await handler(request, responder)
            await responder.finish()
        finally:
            if link.successor is None:
                self._outside(link)

    def _gone(self, link: Link) -> None:
        self._guests.discard(link)
        self._outside(link)

    def _outside(self, link: Link) -> None:
        self._inside.discard(link)
        self._left.set()

    async def _part(self, seconds: float) -> None:
        """Everything is about to begin anew: those who are connected have to come again.

        They hear a goodbye, and have so many seconds to take what was said before it. Those who do not are reset.
        """
        why = "everything begins anew"
        with trio.move_on_after(seconds):
            for out in list(self._backstage.connections.values()):
                if out.peer.transport in NETWORK:
                    out.finish(Cut("close", GOING_AWAY, why))
            await self._endpoint.shutdown(why)
            while self._inside:
                self._left = trio.Event()
                await self._left.wait()
        await self._evict()

    async def _evict(self) -> None:
        """Returns when nobody is there any more who has spoken to an agent."""
        left = list(self._inside)
        for link in left:
            link.abort()
        for link in left:
            await link.gone.wait()
        for link in list(self._guests):  # nothing is under way there, unless it is what wants all to begin anew
            link.forget()
            link.hang_up()

    async def _answer(self, request: Request, responder: Responder) -> None:
        closed = self._gate.closed(request.headers)
        if closed is not None:
            self._backstage.note("refused", None, None, why=closed.message, path=request.path)
            await refuse(responder, closed.status, closed.code, closed.message)
            return
        for prefix, handler in self._prefixes:
            if request.path == prefix or request.path.startswith(prefix + "/"):
                await handler(request, responder)
                return
        await refuse(responder, 404, "not_found", f"there is nothing at {request.path}; try {self._places()}")

    def _places(self) -> str:
        return ", ".join(sorted(prefix or "/" for prefix, _ in self._prefixes))

    # --- ACP

    async def _acp(self, request: Request, responder: Responder) -> None:
        from mockagent.net.websocket import handshake_problem, wants_websocket

        agent = self._agent(request.segments[1:])
        if agent is None:
            names = ", ".join(agent.scenario.name for agent in self._backstage.agents)
            await refuse(responder, 404, "not_found", f"there is no agent at {request.path}; there are: {names}")
        elif request.method != "OPTIONS" and not opens(_token(request), agent.scenario.agent.auth.tokens):
            self._backstage.note("refused", None, None, why="there is no bearer token that fits", path=request.path)
            words = "send Authorization: Bearer TOKEN, or ?access_token=TOKEN where headers cannot be set"
            await refuse(responder, 401, "auth_required", words, [("WWW-Authenticate", "Bearer")])
        elif not wants_websocket(request.headers):
            await self._endpoint.handle(agent, request, responder)
        elif (problem := handshake_problem(request.method, request.headers)) is not None:
            version = [("Sec-WebSocket-Version", "13")] if problem[0] == 426 else []
            await refuse(responder, problem[0], "bad_handshake", problem[1], version)
        else:
            from mockagent.acp.websocket import serve_websocket

            await serve_websocket(self._backstage, agent, request, responder)

    def _agent(self, rest: tuple[str, ...]) -> Agent | None:
        name = "/".join(rest).strip("/")
        if not name:
            return self._backstage.agents[0]
        return next((agent for agent in self._backstage.agents if agent.scenario.name == name), None)


def _token(request: Request) -> str | None:
    """The token of a request; a page cannot give a WebSocket headers, so the query may hold it (RFC 6750, 2.3)."""
    return bearer(request.headers) or request.param("access_token")


async def refuse(
    responder: Responder, status: int, code: str, message: str, headers: list[tuple[str, str]] | None = None
) -> None:
    """Answers with an error in JSON."""
    body = msgspec.json.encode({"error": {"code": code, "message": message}})
    await responder.send(status, [("Content-Type", "application/json"), *(headers or [])], body)
