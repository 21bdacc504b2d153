"""AAP version 3 over HTTP: takes every request below its base, and sees to it that it is answered.

    client -> taps -> faults.arriving -> endpoint -> line of the exchange -> client

Every request is a message, and so is every reply and every event. A peer is a TCP connection. Who may connect at all
(`Host`, `Origin`) is decided by the gate, in front of everything.

Source: AAP endpoints page; RFC 9110 for what holds of every HTTP server.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from mockagent.aap import cors, handlers
from mockagent.aap.exchange import Exchange
from mockagent.aap.handlers import ENDPOINTS, endpoint
from mockagent.aap.params import wrong
from mockagent.aap.roster import Roster, Served
from mockagent.aap.turns import Turns
from mockagent.errors import Refusal
from mockagent.faults.interface import Drop, Life, Pass, Play, Reply
from mockagent.faults.listing import with_cursor
from mockagent.message import Fate, HttpHead, Message, Peer
from mockagent.net.http_message import Request
from mockagent.net.http_reply import Responder
from mockagent.script.agent import Agent
from mockagent.wire.backstage import Backstage, Stall
from mockagent.wire.gate import Gate
from mockagent.world.sessions import Session

_decode = msgspec.json.Decoder().decode


class Call:
    """A request as its endpoint sees it.

    Attributes:
        exchange: where it is answered.
        token: the bearer token, or None.
        session: the id in its path, or None.
        unreadable: why its body is no JSON; None: it is, or there is none.
    """

    __slots__ = ("exchange", "session", "token", "unreadable")

    def __init__(self, exchange: Exchange, token: str | None, unreadable: str | None) -> None:
        self.exchange = exchange
        self.token = token
        self.session = exchange.message.session
        self.unreadable = unreadable

    @property
    def query(self) -> dict[str, str]:
        """The query."""
        http = self.exchange.message.http
        return http.query if http is not None else {}

    @property
    def body(self) -> Any:
        """The body.

        Raises:
            Refusal: it is no JSON.
        """
        if self.unreadable is not None:
            raise wrong("the body", self.unreadable)
        return self.exchange.message.data


class Service:
    """One AAP server.

    Args:
        backstage: what all connections of the process share.
        agents: all of the process; those that speak AAP are served.
        base: path below which everything is, such as `/aap` or `/v1`; empty for none.
        gate: knows the origins that are let in; without one, loopback's only.
    """

    def __init__(
        self, backstage: Backstage, agents: Sequence[Agent], base: str = "/aap", *, gate: Gate | None = None
    ) -> None:
        self.base = base.rstrip("/")
        self.roster = Roster(agents)
        self.turns = Turns()
        for served, ids in self.roster.hidden():
            words = "over AAP these ids lead to an agent before it"
            backstage.complain(f"sessions of agent {served.name!r} that cannot be reached: {', '.join(ids)}; {words}")
        self._agents = agents
        self._backstage = backstage
        backstage.on_restart.append(self._restart)
        self._gate = gate or Gate("127.0.0.1")
        self._depth = self.base.count("/")
        self._exchanges = 0

    async def handle(self, request: Request, responder: Responder) -> None:
        """Answers one request whose path is below the base.

        Raises:
            Broken: the client left without an answer.
        """
        pattern = endpoint(request.segments[self._depth :])
        common = cors.common(request.headers, self._gate.allows)
        data, unreadable = _body(request)
        peer, fresh = self._peer(responder)
        message = self._message(request, pattern, peer, data)
        exchange = Exchange(self._backstage, message, responder, common)
        stall = self._arrive(peer, fresh, exchange, responder)
        self._backstage.stage.clock.activity()
        self._backstage.stir()
        self._backstage.taps.saw(message, "in", Fate.INTACT)
        if unreadable is not None:
            self._backstage.taps.malformed(peer, request.body, unreadable)
        self._heard(message, pattern)
        self._take(exchange, request, pattern, unreadable)
        await exchange.run()
        await stall.wait()

    def shutdown(self) -> None:
        """The server ends: answers under way get their end, so that no client takes a part for the whole."""
        self.turns.stop()

    def _restart(self) -> None:
        """Everything begins anew: answers under way end, and the agents may be others now."""
        turns, self.turns = self.turns, Turns()
        self.roster = Roster(self._agents)
        turns.stop()

    # --- connections

    def _peer(self, responder: Responder) -> tuple[Peer, bool]:
        """The name of the connection, and whether this is its first request."""
        known = responder.connection.user
        if isinstance(known, Peer):
            return known, False
        peer = responder.connection.user = self._backstage.peer("aap", "http")
        return peer, True

    def _arrive(self, peer: Peer, fresh: bool, exchange: Exchange, responder: Responder) -> Stall:
        if fresh:
            responder.connection.at_end.append(lambda: self._backstage.depart(peer))
            return self._backstage.arrive(exchange.out)
        self._backstage.connections[peer.id] = exchange.out
        return self._backstage.stall(peer)

    # --- requests

    def _message(self, request: Request, pattern: tuple[str | None, ...] | None, peer: Peer, data: Any) -> Message:
        path = request.path[len(self.base) :] if request.path.startswith(self.base) else request.path
        kind = f"{request.method} {path or '/'}"
        self._exchanges += 1
        row = ENDPOINTS[pattern].get(request.method) if pattern is not None else None
        head = HttpHead(
            method=request.method,
            path=path or "/",
            query={name: values[0] for name, values in request.query.items()},
            headers=dict(request.headers.items()),
        )
        session = request.segments[self._depth + 1] if pattern is not None and None in pattern else None
        message = Message(
            kind,
            data,
            peer,
            neutral=row[1] if row is not None else None,
            session=session,
            id=self._exchanges,
            method=kind,
            http=head,
        )
        if message.neutral == "create":
            message.agent = self._wanted(data)
        return message

    def _wanted(self, body: Any) -> int | None:
        """Position of the agent that a new session is for, as far as the body says."""
        config = body.get("agent") if isinstance(body, dict) else None
        served = self.roster.named(config.get("name")) if isinstance(config, dict) else None
        return None if served is None else self._agents.index(served.agent)

    def _heard(self, message: Message, pattern: tuple[str | None, ...] | None) -> None:
        """Tells those who wait for a request: by its endpoint, or by its neutral kind."""
        if pattern is None or message.http is None:
            return
        name = f"{message.http.method} /{'/'.join('*' if part is None else part for part in pattern)}"
        for served in self.roster.members:
            served.agent.listeners.heard(name, message.session, message.data)
            if message.neutral is not None:
                served.agent.listeners.heard(message.neutral, message.session, message.data)

    def _take(
        self, exchange: Exchange, request: Request, pattern: tuple[str | None, ...] | None, unreadable: str | None
    ) -> None:
        faults = self._backstage.faults
        message = exchange.message
        acts = faults.arriving(message) if faults.watches(message.kind, message.neutral) else (Pass(message),)
        for act in acts:
            if isinstance(act, Pass):
                exchange.message = act.message
                self._answer(exchange, request, pattern, unreadable)
            elif isinstance(act, Reply):
                if act.error is not None:
                    exchange.fail(act.error)
                else:
                    exchange.reply(200, act.result)
            elif isinstance(act, Drop):
                exchange.finish()
            elif isinstance(act, Play):
                self._backstage.play(act.steps, message, _nothing)
            elif isinstance(act, Life):
                exchange.out.live(act, message.session)

    def _answer(
        self, exchange: Exchange, request: Request, pattern: tuple[str | None, ...] | None, unreadable: str | None
    ) -> None:
        if pattern is None:
            exchange.reply(404, handlers.error("not_found", f"There is nothing at {request.path}"))
            return
        rows = ENDPOINTS[pattern]
        allowed = _allowed(rows)
        if request.method == "OPTIONS":
            told = cors.preflight(request.headers, allowed)
            exchange.reply(204, None, {"Allow": ", ".join(allowed)} if told is None else told)
            return
        row = rows.get("GET" if request.method == "HEAD" else request.method)
        if row is None:
            words = f"{request.method} is not possible here: {', '.join(allowed)}"
            exchange.reply(405, handlers.error("method_not_allowed", words), {"Allow": ", ".join(allowed)})
            return
        if request.method == "POST" and not _is_json(request):
            words = "Content-Type has to be application/json"
            exchange.reply(415, handlers.error("unsupported_media_type", words))
            return
        self._call(row[0], Call(exchange, _token(request), unreadable))

    def _call(self, handler: handlers.Handler, call: Call) -> None:
        exchange = call.exchange
        try:
            try:
                handler(self, call)
            except Refusal as refused:
                self._refuse_or(handler, call, refused)
        except handlers.NotThere as missing:
            exchange.reply(404, handlers.error("not_found", str(missing)))
        except Exception as error:  # a mistake of ours: this request fails, everything else goes on
            words = f"internal error in {exchange.message.kind}: {type(error).__name__}: {error}"
            self._backstage.agents[0].complain(words, error)
            self._backstage.note("bug", exchange.peer, exchange.message.session, error=words)
            if not (exchange.streaming or exchange.complete):
                handlers.refusal(exchange, Refusal("internal_error"))

    def _refuse_or(self, handler: handlers.Handler, call: Call, refused: Refusal) -> None:
        """Answers with an error, or with what the scenario wants in its place."""
        exchange = call.exchange
        instead = self._backstage.faults.refusing(exchange.message, refused.name)
        if instead is None:
            handlers.refusal(exchange, refused)
        elif instead.do is None:
            exchange.fail(instead.error)
        elif instead.do == "empty":
            exchange.reply(200, {"sessions": []} if exchange.message.neutral == "list" else {})
        else:
            try:
                self._again(handler, call, instead.do)
            except Refusal as again:
                handlers.refusal(exchange, again)

    def _again(self, handler: handlers.Handler, call: Call, do: str) -> None:
        """Tries again, with the session made or the cursor forgotten."""
        if do == "first_page":
            call.exchange.message = with_cursor(call.exchange.message, None)
        else:
            self.roster.open_to(call.token)[0].agent.world.sessions.create(None, id=call.session)
        handler(self, call)

    def find(self, call: Call) -> tuple[Served, Session]:
        """The session that a request is about, with its agent.

        Raises:
            Refusal: there is none, or the token does not open it.
        """
        return self.roster.session(call.session or "", call.token)


def _body(request: Request) -> tuple[Any, str | None]:
    """The body as JSON, and why it is none."""
    if not request.body:
        return None, ("is empty, and has to be JSON" if request.method == "POST" else None)
    if not _is_json(request):
        return None, None
    try:
        return _decode(request.body), None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return None, f"is no JSON: {error}"


def _is_json(request: Request) -> bool:
    kind = (request.headers.get("content-type") or "").partition(";")[0].strip().lower()
    return kind == "application/json"


def _token(request: Request) -> str | None:
    """The bearer token (RFC 6750, 2.1)."""
    scheme, _, token = (request.headers.get("authorization") or "").strip().partition(" ")
    return token.strip() or None if scheme.lower() == "bearer" else None


def _allowed(rows: dict[str, Any]) -> list[str]:
    methods = list(rows)
    if "GET" in rows:
        methods.insert(methods.index("GET") + 1, "HEAD")
    return [*methods, "OPTIONS"]


def _nothing() -> None:
    pass
