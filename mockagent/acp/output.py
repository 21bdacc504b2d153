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
from mockagent.acp.requests import ANSWERS, REQUESTS, Ask
from mockagent.faults.interface import Life
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
        self._asked: dict[Ticket, int] = {}
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
        body = render.surface(item, self.session, self.connection.agent.scenario.agent, self.connection.client)
        if body is None:
            return False
        self.update(body, origin)
        return True

    def _raw(self, item: Raw, origin: Origin) -> bool:
        if item.verb == "update":
            self.update(item.payload, origin)
        elif item.verb == "notify":
            self._notify(item.payload, origin)
        else:
            self._send(item.payload, origin)
        return True

    def _notify(self, payload: Any, origin: Origin) -> None:
        params = {} if payload.params is msgspec.UNSET else payload.params
        if isinstance(params, dict):
            params = {"sessionId": self.session.id} | params
        kind = kinds.update("?") if payload.method == "session/update" else f"notify:{payload.method}"
        self.connection.notify(payload.method, params, kind=kind, session=self.session.id, origin=origin)

    def _send(self, payload: Any, origin: Origin) -> None:
        raw = payload.encode() if isinstance(payload, str) else None
        peer = self.connection.peer
        self.connection.out.send(
            Message("raw", payload, peer, raw=raw, session=self.session.id, origin=origin, damaged=("send",))
        )

    def _wire(self, item: Wire, origin: Origin) -> bool:
        act = item.payload
        if not isinstance(act, Life):
            from mockagent.faults.effects import life_of_step

            act = life_of_step(item.verb, item.payload)
        self.connection.out.live(act, self.session.id)
        return True

    # --- questions

    def admit(self, tool: ToolCall, ask: bool) -> Admission:
        """ACP knows no tools that a client enables: the scenario says whether it asks. A client-side tool is AAP's."""
        if tool.side == "client":
            return Admission.SKIP
        return Admission.ASK if ask else Admission.INLINE

    def ask(self, need: Need, ticket: Ticket, origin: Origin) -> bool:
        """Sends the request that a need stands for."""
        made = None if self.connection.closed else self._request_for(need)
        if made is None:
            return False
        answer = partial(self._answered, ticket, need)
        self._asked[ticket] = self.connection.request(
            made.method, made.params, answer, session=self.session.id, origin=origin
        )
        return True

    def _request_for(self, need: Need) -> Ask | None:
        if isinstance(need, Permission):
            return Ask("session/request_permission", render.permission(self.session, need))
        if isinstance(need, ClientRequest) and need.verb in REQUESTS:
            return REQUESTS[need.verb](need.payload, self.session, self.connection.client)
        return None

    def _answered(self, ticket: Ticket, need: Need, response: Response | Lost) -> None:
        self._asked.pop(ticket, None)
        if isinstance(response, Lost):
            answer = Answer(outcome="error", value={"message": response.reason})
        elif response.error is not None:
            outcome: Any = "cancelled" if response.error.get("code") == _CANCELLED else "error"
            answer = Answer(outcome=outcome, value=response.error, message=response.data)
        else:
            answer = ANSWERS.get(type(need), _result)(need, response)
        ticket.settle(answer)

    def withdraw(self, ticket: Ticket) -> None:
        """Tells the client that its answer is not wanted any more (`$/cancel_request`)."""
        id = self._asked.pop(ticket, None)
        if id is not None:
            self.connection.notify(
                "$/cancel_request",
                {"requestId": id},
                kind="notify:$/cancel_request",
                session=self.session.id,
                origin="turn",
            )

    def parked(self, open: Sequence[Ticket]) -> None:
        """ACP asks in the middle of a turn; nothing has to be told."""

    def end(self, how: Stop | Fail) -> None:
        """Only a turn's own output ends one."""


class TurnOutput(SessionOutput):
    """The output of a turn: it also answers the prompt."""

    def __init__(self, connection: Connection, session: Session, call: Call) -> None:
        super().__init__(connection, session)
        self._call = call

    def end(self, how: Stop | Fail) -> None:
        """Answers `session/prompt`."""
        if isinstance(how, Stop):
            self.connection.reply(self._call, {"stopReason": how.reason})
        else:
            self.connection.fail(self._call, how.error)
        if self._call.turn is not None:  # else it was refused while another turn runs
            self.connection.out.release("turn_ended", self.session.id)


_CANCELLED = -32800


def _result(need: Need, response: Response) -> Answer:
    return Answer(outcome="result", value=response.result, message=response.data)


_EMIT: dict[type, Callable[[SessionOutput, Any, Origin], bool]] = {
    Text: SessionOutput._text,
    ToolCall: SessionOutput._tool_call,
    ToolUpdate: SessionOutput._tool_update,
    Info: SessionOutput._info,
    Surface: SessionOutput._surface,
    Raw: SessionOutput._raw,
    Wire: SessionOutput._wire,
}
