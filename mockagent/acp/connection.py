"""One ACP connection without its transport: JSON texts come in, messages go out through an `Outgoing`.

Parses, checks and answers; keeps what was asked and not yet answered, in both directions. It is synchronous and owns no
socket. What the methods do is in `handlers`, what updates look like in `render`.

Source: ACP v1, pages "Overview", "Transports", "Prompt Turn"; JSON-RPC 2.0.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec

from mockagent.acp import handlers, kinds
from mockagent.acp.output import SessionOutput
from mockagent.acp.params import ClientCapabilities
from mockagent.errors import Refusal, jsonrpc_error
from mockagent.faults.interface import Act, Delay, Drop, Hold, Life, Pass, Play, Reply
from mockagent.jsonrpc.correlation import InFlight, Lost, Pending
from mockagent.jsonrpc.messages import (
    Batch,
    Malformed,
    Notification,
    Request,
    Response,
    Single,
    error_message,
    notification_message,
    parse,
    request_message,
    result_message,
)
from mockagent.message import NO_ID, Fate, Message, Origin, Peer
from mockagent.script.agent import Agent

if TYPE_CHECKING:
    from mockagent.acp.mcp import Toolbox
    from mockagent.script.prompt import Waiting
    from mockagent.script.run import Run
    from mockagent.wire.backstage import Backstage
    from mockagent.wire.outgoing import Outgoing
    from mockagent.world.sessions import Session


class Call:
    """A request of the client that is being answered.

    Attributes:
        then: called right behind the answer, if the answer was a result.
        turn: the turn it started or waits for, for `$/cancel_request`.
        gate: what a result has to wait for; takes the call that sends it.
    """

    __slots__ = ("batch", "gate", "id", "message", "method", "open", "session", "then", "turn")

    def __init__(self, message: Message, batch: Batch | None) -> None:
        self.message = message
        self.id = message.id
        self.method = message.method
        self.session = message.session
        self.batch = batch
        self.open = True
        self.then: Callable[[], None] | None = None
        self.gate: Callable[[Callable[[], None]], None] | None = None
        self.turn: Run | Waiting | None = None


class Connection:
    """The agent's end of one connection.

    Args:
        backstage: what all connections share.
        agent: who answers here.
        peer: name of this connection.
        out: the way out.

    Attributes:
        version: the protocol version agreed on, None before `initialize`.
        client: what the client can do.
        outputs: the sessions opened here, with their outputs.
        toolboxes: the MCP servers of those sessions, where the agent connects to them.
        logins: how often the client has logged in or out.
        replaying: sessions whose history is being replayed to this client; their turns wait until it is through.
    """

    def __init__(self, backstage: Backstage, agent: Agent, peer: Peer, out: Outgoing) -> None:
        self.backstage = backstage
        self.agent = agent
        self.peer = peer
        self.out = out
        self.version: int | None = None
        self.client = ClientCapabilities()
        self.authenticated = agent.world.logged_in or not agent.scenario.agent.auth.required
        self.outputs: dict[str, SessionOutput] = {}
        self.toolboxes: dict[str, Toolbox] = {}
        self.logins = 0
        self.replaying: list[str] = []
        self.calls: InFlight[Call] = InFlight()
        self.pending = Pending()
        self.closed = False
        self._visited: dict[str, SessionOutput] = {}
        self._leaving: list[Callable[[], None]] = []
        peer.agent = backstage.agents.index(agent)
        out.on_new_id(self.pending.rename)
        backstage.on_restart.append(self.restart)

    # --- coming in

    def receive(self, raw: bytes) -> None:
        """Takes one JSON text. Whatever it holds, the connection goes on.

        What it brings about without time passing has happened when this returns: so it makes no difference whether the
        next text came in the same read.
        """
        incoming = parse(raw)
        if isinstance(incoming, list):
            self._take_batch(incoming)
        else:
            self._take(incoming, None)
        self.backstage.stage.pump()

    def _take_batch(self, incoming: list[Single]) -> None:
        batch = Batch(incoming)
        self.backstage.note("batch", self.peer, None, size=len(incoming))
        if batch.complete:  # no requests: what is to be answered is known already
            self._close_batch(batch)
        for member in incoming:
            self._take(member, batch)

    def refuse_text(self, raw: bytes, code: int, why: str) -> None:
        """Answers something that could not even be read as a text (an oversized line)."""
        self._malformed(Malformed(code, why, None, raw), None)

    def settle_in(self) -> None:
        """The client has introduced itself: it hears of sessions that are not open, and of what faults wait for."""
        self._leaving = [self.agent.presence.visit(self._visit)]
        self.agent.on_event.append(self._point)
        self._leaving.append(partial(self.agent.on_event.remove, self._point))

    def _visit(self, session: Session) -> SessionOutput:
        output = self._visited.get(session.id)
        if output is None:
            output = self._visited[session.id] = SessionOutput(self, session)
        return output

    def _point(self, event: str, session: str | None) -> None:
        """A point in the life of a session that is open here, for faults."""
        if session in self.outputs and event != "session_listed":
            self.backstage.point(event, self.out, session)

    def restart(self) -> None:
        """The world has begun anew: no session is open here any more."""
        for id in list(self.toolboxes):
            self.drop_tools(id)
        self.outputs.clear()
        self._visited.clear()

    def drop_tools(self, session: str) -> None:
        """The MCP servers of a session end with it."""
        toolbox = self.toolboxes.pop(session, None)
        if toolbox is not None:
            toolbox.close()

    def deaf(self) -> None:
        """The client says nothing more: what it was asked fails, and it is not asked again. It may still listen."""
        self.closed = True
        self.pending.fail_all("the connection ended")
        for toolbox in self.toolboxes.values():
            toolbox.hurry()

    def lost(self) -> None:
        """The client is gone: open requests fail, sessions and their turns go on without a listener."""
        self.deaf()
        for leave in self._leaving:
            leave()
        self._leaving = []
        if self.restart in self.backstage.on_restart:
            self.backstage.on_restart.remove(self.restart)
        for id in list(self.toolboxes):
            self.drop_tools(id)
        for id, output in self.outputs.items():
            self.agent.leave(output, id)
        self.outputs.clear()

    def _take(self, member: Single, batch: Batch | None) -> None:
        if isinstance(member, Malformed):
            self._malformed(member, batch)
            return
        message = self._message(member)
        self.backstage.stage.clock.activity()
        self.backstage.stir()
        self.backstage.taps.saw(message, "in", Fate.INTACT)
        self.agent.listeners.heard(message.kind, message.session, message.data)
        if isinstance(member, Request):
            refused = self.calls.open(member, call := Call(message, batch))
            if refused is not None:
                self._post(call, refused)
                return
            self._request(call)
        elif isinstance(member, Notification):
            self._notification(message)
        else:
            self._response(message)

    def _message(self, member: Request | Notification | Response) -> Message:
        if isinstance(member, Response):
            asked = self.pending.get(member.id)
            method = asked.method if asked is not None else self.pending.settled(member.id) or ""
            session = asked.context if asked is not None else None
            return Message(
                f"answer:{method}", member.data, self.peer, raw=member.raw, id=member.id, method=method, session=session
            )
        params = member.params
        session = params.get("sessionId") if isinstance(params, dict) else None
        return Message(
            member.method,
            member.data,
            self.peer,
            neutral=kinds.ARRIVING.get(member.method),
            raw=member.raw,
            session=session if isinstance(session, str) else None,
            id=member.id if isinstance(member, Request) else NO_ID,
            method=member.method,
        )

    def _malformed(self, member: Malformed, batch: Batch | None) -> None:
        self.backstage.taps.malformed(self.peer, member.raw, member.message)
        self.backstage.complain(f"{self.peer.id}: {member.message}: {member.raw[:80]!r}")
        reply = member.reply()
        if reply is not None and batch is None:  # a batch answers its malformed members itself
            self.out.send(Message("reply:", reply, self.peer, id=member.id, origin="handler"))

    def _arriving(self, message: Message) -> list[Act]:
        faults = self.backstage.faults
        if not faults.watches(message.kind, message.neutral):
            return [Pass(message)]
        return list(faults.arriving(message))

    def _request(self, call: Call) -> None:
        def take(message: Message) -> None:
            call.message = message
            self._handle(call)

        acts = self._arriving(call.message)
        self._carry_out(acts, call.message, take, partial(self._reply_of_fault, call), partial(self._give_up, call))

    def _carry_out(
        self,
        acts: Sequence[Act],
        message: Message,
        take: Callable[[Message], None],
        answer: Callable[[Reply], None],
        drop: Callable[[], None],
    ) -> None:
        """Does with a message that has come in what faults want; what stands behind a wait or behind steps waits."""
        for index, act in enumerate(acts):
            rest = partial(self._carry_out, acts[index + 1 :], message, take, answer, drop)
            if isinstance(act, Pass):
                take(act.message)
            elif isinstance(act, Reply):
                answer(act)
            elif isinstance(act, Drop):
                drop()
            elif isinstance(act, Hold):
                self.out.hold(act, partial(take, act.message))
            elif isinstance(act, Life):
                self.out.live(act, message.session)
            elif isinstance(act, Delay):
                self.backstage.later(act.span, rest)
                return
            elif isinstance(act, Play) and not self.backstage.play(act.steps, message, rest):
                return

    def _give_up(self, call: Call) -> None:
        """A request that is never answered, because the scenario says so."""
        if call.open:
            call.open = False
            self.calls.close(call.id)
            if call.batch is not None:
                call.batch.give_up()
                self._close_batch(call.batch)

    def _handle(self, call: Call) -> None:
        try:
            result = handlers.handle(self, call)
        except Refusal as refusal:
            self._refuse_or(call, refusal)
            return
        except Exception as error:
            self.agent.complain(f"internal error in {call.method}: {type(error).__name__}: {error}", error)
            self.refuse(call, Refusal("internal_error"))
            return
        if result is not handlers.LATER:
            self.reply(call, result)

    def _refuse_or(self, call: Call, refusal: Refusal) -> None:
        """Answers with an error, or with what the scenario wants in its place."""
        instead = self.backstage.faults.refusing(call.message, refusal.name)
        if instead is None:
            self.refuse(call, refusal)
        elif instead.do is None:
            self.fail(call, instead.error)
        else:
            try:
                result = handlers.instead(self, call, instead.do)
            except Refusal as again:
                self.refuse(call, again)
                return
            if result is not handlers.LATER:
                self.reply(call, result)

    def _notification(self, message: Message) -> None:
        answer = partial(self._error_for_notification, message)
        self._carry_out(self._arriving(message), message, self._notice, answer, _nothing)

    def _notice(self, message: Message) -> None:
        try:
            handlers.notify(self, message)
        except Refusal as refusal:  # a notification is never answered, so the journal and stderr tell
            self.backstage.note("refused", self.peer, message.session, why=refusal.message)
            self.backstage.complain(f"{self.peer.id}: {message.method}: {refusal.message}")
        except Exception as error:
            self.agent.complain(f"internal error in {message.method}: {type(error).__name__}: {error}", error)

    def _response(self, message: Message) -> None:
        self._carry_out(self._arriving(message), message, self._settle, lambda reply: None, _nothing)

    def _settle(self, message: Message) -> None:
        data = message.data
        response = Response(data.get("id"), data.get("result"), data.get("error"), message.text, data)
        if self.pending.settle(response) is None:
            again = self.pending.settled(response.id)
            self.backstage.note("unexpected_answer", self.peer, None, id=response.id, second=again is not None)

    def _reply_of_fault(self, call: Call, act: Reply) -> None:
        if act.error is not None:
            self.fail(call, act.error)
        else:
            self.reply(call, act.result)

    def _error_for_notification(self, message: Message, act: Reply) -> None:
        """A violation that the scenario asks for: an answer, under id null, to what must not be answered."""
        error = jsonrpc_error(act.error)
        body = {"jsonrpc": "2.0", "id": None, "error": error}
        self.out.send(Message(kinds.reply(message.method), body, self.peer, method=message.method, origin="handler"))

    # --- answers

    def reply(self, call: Call, result: Any) -> None:
        """Answers a request; the second answer to one request is not sent."""
        gate, call.gate = call.gate, None
        if gate is not None:
            gate(partial(self.reply, call, result))
            return
        self._answer(call, result_message(call.id, result), call.then)

    def refuse(self, call: Call, refusal: Refusal) -> None:
        """Answers a request with an error."""
        data = refusal.data or msgspec.UNSET
        self._answer(call, error_message(call.id, refusal.row.code, refusal.message, data))

    def fail(self, call: Call, error: Any) -> None:
        """Answers a request with an error as a scenario names it."""
        self._answer(call, {"jsonrpc": "2.0", "id": call.id, "error": jsonrpc_error(error)})

    def _answer(self, call: Call, data: dict[str, Any], then: Callable[[], None] | None = None) -> None:
        if not call.open:
            return
        call.open = False
        self.calls.close(call.id)
        self._post(call, data, then)

    def _post(self, call: Call, data: dict[str, Any], then: Callable[[], None] | None = None) -> None:
        session = call.session
        if session is None and isinstance(data.get("result"), dict):
            session = data["result"].get("sessionId")
        kind = kinds.reply(call.method)
        message = Message(
            kind,
            data,
            self.peer,
            neutral=kinds.LEAVING.get(kind),
            session=session,
            id=call.id,
            method=call.method,
            origin="handler",
        )
        message.follow = then
        if call.batch is None:
            self.out.send(message)
        else:
            self._into_batch(message, call.batch)

    def _into_batch(self, message: Message, batch: Batch) -> None:
        """One member of a batch: faults and taps see it by itself, the client gets it in one array with the others."""
        texts: list[bytes] | None = []

        def sink(left: Message) -> None:
            self.backstage.taps.saw(left, "out", Fate.DAMAGED if left.damaged else Fate.INTACT)
            if texts is None:  # held back until the array had left
                self.out.send(Message("reply:batch", None, self.peer, raw=left.text, origin="fault"))
            else:
                texts.append(left.text)

        self.out.send(message, sink)
        if texts:
            batch.add(b",".join(texts))
        else:
            batch.give_up()
        texts = None
        self._close_batch(batch)

    def _close_batch(self, batch: Batch) -> None:
        if batch.complete and (text := batch.text()) is not None:
            self.out.send(Message("reply:batch", None, self.peer, raw=text, origin="handler"))

    # --- going out on our own

    def notify(self, method: str, params: Any, *, kind: str, session: str | None, origin: Origin) -> None:
        """Sends a notification."""
        self.out.send(
            Message(
                kind,
                notification_message(method, params),
                self.peer,
                neutral=kinds.LEAVING.get(kind),
                session=session,
                method=method,
                origin=origin,
            )
        )

    def request(
        self,
        method: str,
        params: Any,
        on_answer: Callable[[Response | Lost], None],
        *,
        session: str | None,
        origin: Origin,
    ) -> int:
        """Sends a request to the client and returns its id."""
        id = self.pending.open(method, on_answer, session)
        message = request_message(id, method, params)
        self.out.send(
            Message(f"request:{method}", message, self.peer, session=session, id=id, method=method, origin=origin)
        )
        return id

    def take_back(self, id: int, session: str | None) -> None:
        """Tells the client that the answer to a request is not wanted any more; it still owes one.

        Source: Cancellation, `$/cancel_request`.
        """
        sent = self.pending.sent_as(id)
        if self.closed or self.pending.get(sent) is None:
            return
        params = {"requestId": sent}
        self.notify("$/cancel_request", params, kind="notify:$/cancel_request", session=session, origin="turn")


def _nothing() -> None:
    """What never arrives needs no answer."""
