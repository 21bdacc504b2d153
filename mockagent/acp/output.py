"""The script's `Output` over ACP: items become updates and requests on one connection, for one session.

Streamed text takes a fast path: as long as no fault watches it, chunks are put together from encoded pieces and handed
on as one burst.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec

from mockagent.acp import kinds, render
from mockagent.acp.requests import ANSWERS, REQUESTS, Ask, CannotAsk, Where, addressed, error_answer
from mockagent.jsonrpc.correlation import Lost
from mockagent.jsonrpc.messages import Response
from mockagent.message import Burst, Message, Origin, Peer
from mockagent.script.output import (
    Admission,
    Answer,
    ClientRequest,
    Fail,
    Info,
    Item,
    Need,
    Output,
    Permission,
    Raw,
    Stop,
    Surface,
    Text,
    Ticket,
    ToolCall,
    ToolUpdate,
    Wire,
)
from mockagent.world.sessions import Session

if TYPE_CHECKING:
    from mockagent.acp.connection import Call, Connection

_encode = msgspec.json.Encoder().encode
_SEAM = "\ufffe"  # stands for the text while a chunk's surroundings are encoded; no character, so no text holds it


class SessionOutput:
    """Sends to a client that has a session open; a turn's own output is `TurnOutput`."""

    def __init__(self, connection: Connection, session: Session) -> None:
        self.connection = connection
        self.session = session
        self._asked: dict[Ticket, Callable[[], None]] = {}
        self._seams: dict[tuple[str, str | None], tuple[bytes, bytes]] = {}

    @property
    def room(self) -> int:
        """Room on the way that this session's messages take."""
        return self.connection.out.room_for(self.session.id)

    @property
    def peer(self) -> Peer:
        """The connection it leads to."""
        return self.connection.peer

    def same_client(self, other: Output) -> bool:
        """Whether both lead to the same connection."""
        return other.peer is self.peer

    # --- items

    def emit(self, item: Item, origin: Origin) -> bool:
        """Sends an item as the updates that ACP has for it."""
        return _EMIT[type(item)](self, item, origin)

    def update(self, body: dict[str, Any], origin: Origin) -> None:
        """Sends one `session/update`."""
        kind = kinds.update(str(body.get("sessionUpdate")))
        params = {"sessionId": self.session.id, "update": body}
        self.connection.notify("session/update", params, kind=kind, session=self.session.id, origin=origin)

    def _text(self, item: Text, origin: Origin) -> bool:
        if len(item.parts) == 1 or item.meta is not None or not all(type(part) is str for part in item.parts):
            for part in item.parts:
                self.update(render.text(item, part), origin)
            return True
        kind = kinds.update(render.CHUNKS[item.role])
        head, tail = self._seam(item)
        texts = [head + _encode(part) + tail for part in item.parts]
        neutral = kinds.LEAVING.get(kind, item.role)
        self.connection.out.send_burst(Burst(kind, neutral, self.connection.peer, self.session.id, origin, texts))
        return True

    def _seam(self, item: Text) -> tuple[bytes, bytes]:
        """What stands before and behind the text in every chunk of a message."""
        key = (item.role, item.message_id)
        found = self._seams.get(key)
        if found is None:
            params = {"sessionId": self.session.id, "update": render.text(item, _SEAM)}
            whole = _encode({"jsonrpc": "2.0", "method": "session/update", "params": params})
            head, _, tail = whole.rpartition(_encode(_SEAM))
            self._seams.clear()  # only the message being said is ever asked for again
            found = self._seams[key] = (head, tail)
        return found

    def _tool_call(self, item: ToolCall, origin: Origin) -> bool:
        self.update(render.tool_call(item, self.session.cwd), origin)
        return True

    def _tool_update(self, item: ToolUpdate, origin: Origin) -> bool:
        self.update(render.tool_update(item, self.session.cwd), origin)
        return True

    def _info(self, item: Info, origin: Origin) -> bool:
        self.update(render.info(item), origin)
        return True

    def _surface(self, item: Surface, origin: Origin) -> bool:
        agent = self.connection.agent.scenario.agent
        bodies = render.surface(item, self.session, agent, self.connection.client)
        for body in bodies:
            self.update(body, origin)
        return bool(bodies)

    def _raw(self, item: Raw, origin: Origin) -> bool:
        if item.verb == "update":
            self.update(item.payload, origin)
        elif item.verb == "notify":
            self._notify(item.payload, origin)
        else:
            self._send(item.payload, origin)
        return True

    def _notify(self, payload: Any, origin: Origin) -> None:
        params = addressed(payload.method, payload.params, self.session)
        kind = kinds.update("?") if payload.method == "session/update" else f"notify:{payload.method}"
        self.connection.notify(payload.method, params, kind=kind, session=self.session.id, origin=origin)

    def _send(self, payload: Any, origin: Origin) -> None:
        raw = payload.encode() if isinstance(payload, str) else None
        peer = self.connection.peer
        self.connection.out.send(
            Message("raw", payload, peer, raw=raw, session=self.session.id, origin=origin, damaged=("send",))
        )

    def _wire(self, item: Wire, origin: Origin) -> bool:
        self.connection.out.wire(item, self.session.id)
        return True

    # --- questions

    def admit(self, tool: ToolCall, ask: bool) -> Admission:
        """ACP knows no tools that a client enables: the scenario says whether it asks. A client-side tool is AAP's."""
        if tool.side == "client":
            return Admission.SKIP
        return Admission.ASK if ask else Admission.INLINE

    def ask(self, need: Need, ticket: Ticket, origin: Origin) -> bool:
        """Sends the request that a need stands for."""
        if self.connection.closed:
            return False
        try:
            take_back = self._put(need, ticket, origin)
        except CannotAsk as cannot:
            self.connection.backstage.note("cannot_ask", self.peer, self.session.id, why=str(cannot))
            return False
        if take_back is None:
            return False
        self._asked[ticket] = take_back
        return True

    def _put(self, need: Need, ticket: Ticket, origin: Origin) -> Callable[[], None] | None:
        """Asks; returns what takes the question back, or None if ACP has no words for it."""
        if isinstance(need, Permission):
            return self._send_request(
                Ask("session/request_permission", render.permission(self.session, need)), need, ticket, origin
            )
        if not isinstance(need, ClientRequest):
            return None
        if need.verb == "terminal":
            return self._terminal(need, ticket, origin)
        if need.verb == "mcp":
            return self._mcp(need, ticket)
        return self._send_request(REQUESTS[need.verb](need.payload, self._where), need, ticket, origin)

    @property
    def _where(self) -> Where:
        lawful = self.connection.agent.scenario.legality != "violation"
        return Where(self.session, self.connection.client, lawful)

    def _send_request(self, made: Ask, need: Need, ticket: Ticket, origin: Origin) -> Callable[[], None]:
        answer = partial(self._answered, ticket, need)
        id = self.connection.request(made.method, made.params, answer, session=self.session.id, origin=origin)
        return partial(self.connection.take_back, id, self.session.id)

    def _terminal(self, need: ClientRequest, ticket: Ticket, origin: Origin) -> Callable[[], None]:
        from mockagent.acp.terminal import TerminalWork, create_params

        params = create_params(need.payload, self._where)
        work = TerminalWork(self.connection, self.session.id, need, partial(self._settle, ticket), origin)
        work.begin(params)
        return work.withdraw

    def _mcp(self, need: ClientRequest, ticket: Ticket) -> Callable[[], None]:
        toolbox = self.connection.toolboxes.get(self.session.id)
        if toolbox is None:
            raise CannotAsk("no MCP server is connected in this session")
        return toolbox.call(need.payload, partial(self._settle, ticket))

    def _answered(self, ticket: Ticket, need: Need, response: Response | Lost) -> None:
        if isinstance(response, Lost):
            answer = Answer(outcome="error", value={"message": response.reason}, words=response.reason)
        elif response.error is not None:
            answer = error_answer(response.error, response.data)
        else:
            answer = ANSWERS[type(need)](need, response)
        self._settle(ticket, answer)

    def _settle(self, ticket: Ticket, answer: Answer) -> None:
        self._asked.pop(ticket, None)
        ticket.settle(answer)

    def withdraw(self, ticket: Ticket) -> None:
        """Tells the client that its answer is not wanted any more, if it was asked here."""
        take_back = self._asked.pop(ticket, None)
        if take_back is not None:
            take_back()

    def parked(self, open: Sequence[Ticket]) -> None:
        """ACP asks in the middle of a turn; nothing has to be told."""

    def end(self, how: Stop | Fail) -> None:
        """Only a turn's own output ends one."""


class TurnOutput(SessionOutput):
    """The output of a turn: it also answers the prompt."""

    def __init__(self, connection: Connection, session: Session, call: Call) -> None:
        super().__init__(connection, session)
        self._call = call

    @property
    def room(self) -> int:
        """None while the session's history is replayed to the same client: first the past, then what goes on."""
        return 0 if self.session.id in self.connection.replaying else super().room

    def end(self, how: Stop | Fail) -> None:
        """Answers `session/prompt`."""
        if isinstance(how, Stop) and how.reason != "error":
            result: dict[str, Any] = {"stopReason": how.reason}
            self.connection.reply(self._call, result | ({"_meta": how.meta} if how.meta is not None else {}))
        elif isinstance(how, Stop):  # a stop reason of AAP alone
            self.connection.fail(self._call, "internal_error")
        else:
            self.connection.fail(self._call, how.error)
        if self._call.turn is not None:  # else it was refused while another turn runs
            self.connection.out.release("turn_ended", self.session.id)


_EMIT: dict[type, Callable[[SessionOutput, Any, Origin], bool]] = {
    Text: SessionOutput._text,
    ToolCall: SessionOutput._tool_call,
    ToolUpdate: SessionOutput._tool_update,
    Info: SessionOutput._info,
    Surface: SessionOutput._surface,
    Raw: SessionOutput._raw,
    Wire: SessionOutput._wire,
}
